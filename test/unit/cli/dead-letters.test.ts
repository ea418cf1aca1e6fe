import assert from 'node:assert/strict';
import { test } from 'node:test';
import { commandLine } from './command-line.ts';

test('one dead letter is sent again, named as list shows it, or by how it begins', async (t) => {
  const { run, letters } = commandLine(t);
  for (const body of ['{"a":1}', '{"b":2}']) letters.add('evictions-due', { body }, 'it was given up');
  assert.match(await run('dead-letters', 'list'), /^ID +QUEUE .*\n1 +evictions-due .*\n2 +evictions-due /);
  assert.equal(await run('dead-letters', 'redrive', '2'), 'Dead letter 2 of evictions-due is sent again.\n');
  assert.deepEqual(
    letters.takeRedriven().map(({ id }) => id),
    [2],
  );
});

test('a dead letter that is not there is not sent again', async (t) => {
  const { run } = commandLine(t);
  await assert.rejects(run('dead-letters', 'redrive', '2'), {
    name: 'CliError',
    message: /^There is no dead letter 2 /,
  });
});

test('which dead letters are sent again has to be said, in one way', async (t) => {
  const { run } = commandLine(t);
  for (const args of [[], ['2', '--all'], ['--all', '--queue', 'evictions-due']]) {
    await assert.rejects(run('dead-letters', 'redrive', ...args), {
      name: 'CliError',
      message: /^Say which: ID, --queue NAME, or --all/,
    });
  }
});

test('a queue of an agent is asked for by its name, and no other that is not there', async (t) => {
  const { run, letters } = commandLine(t);
  letters.add('agent-edge-1-evictions-due', { body: '{}' }, 'it was given up');
  const ofAgent = ['--queue', 'agent-edge-1-evictions-due'];
  assert.match(await run('dead-letters', 'list', ...ofAgent), /\n1 +agent-edge-1-evictions-due /);
  assert.match(
    await run('dead-letters', 'redrive', '--all'),
    /\nDead letters of agent-edge-1-evictions-due that are sent again, about: 1\./,
  );
  await assert.rejects(
    run('dead-letters', 'list', '--queue', 'agents'),
    /Allowed choices are .* of an agent/,
  );
});
