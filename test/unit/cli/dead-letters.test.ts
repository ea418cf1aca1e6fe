import assert from 'node:assert/strict';
import { test } from 'node:test';
import { commandLine } from './command-line.ts';

test('one dead letter is sent again, named as list shows it, or by how it begins', async (t) => {
  const { run, letters } = commandLine(t);
  for (const body of ['{"a":1}', '{"b":2}']) letters.add('evictions-due', { body }, 'it was given up');
  assert.match(await run('dead-letters', 'list'), /^ID +QUEUE .*\n1 +evictions-due .*\n2 +evictions-due /);
  assert.equal(
    await run('dead-letters', 'redrive', '2'),
    'Sent dead-letter message 2 to evictions-due again.\n',
  );
  assert.deepEqual(
    letters.takeRedriven().map(({ id }) => id),
    ['2'],
  );
});

test('the dead letters that SQS does not show are counted, apart from what is printed', async (t) => {
  const { run, letters, state, fleet } = commandLine(t);
  for (let count = 0; count < 14; count++)
    letters.add('node-deltas.fifo', { body: '{}' }, 'nobody can read it');
  letters.add('evictions-due', { body: '{}' }, 'it was given up');
  const { list } = fleet.deadLetters;
  t.mock.method(fleet.deadLetters, 'list', async (limit: number, queue?: string) =>
    (await list(limit, queue)).slice(0, 10),
  );
  const { length } = JSON.parse(await run('dead-letters', 'list', '-o', 'json'));
  assert.equal(length, 10);
  assert.match(
    state.complained,
    /^About 5 messages are not shown\. SQS shows at most ten dead-letter messages of a node, /,
  );
  state.complained = '';
  await run('dead-letters', 'list', '--queue', 'node-deltas.fifo');
  assert.match(state.complained, /^About 4 messages are not shown\. .*redrive --queue NAME\.\n$/);
});

test('of dead letters that are all shown, or cut by the limit, none is said to be hidden', async (t) => {
  const { run, letters, state } = commandLine(t);
  for (let count = 0; count < 14; count++)
    letters.add('node-deltas.fifo', { body: '{}' }, 'nobody can read it');
  await run('dead-letters', 'list');
  await run('dead-letters', 'list', '--limit', '5');
  assert.equal(state.complained, '');
});

test('a dead letter that is not there is not sent again', async (t) => {
  const { run } = commandLine(t);
  await assert.rejects(run('dead-letters', 'redrive', '2'), {
    name: 'CliError',
    message: /^Dead-letter message "2" not found /,
  });
});

test('which dead letters are sent again has to be said, in one way', async (t) => {
  const { run } = commandLine(t);
  for (const args of [[], ['2', '--all'], ['--all', '--queue', 'evictions-due']]) {
    await assert.rejects(run('dead-letters', 'redrive', ...args), {
      name: 'CliError',
      message: /^Specify exactly one of ID, --queue, or --all/,
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
    /\nSent about 1 dead-letter messages to agent-edge-1-evictions-due again\./,
  );
  await assert.rejects(
    run('dead-letters', 'list', '--queue', 'agents'),
    /Allowed choices are .* of an agent/,
  );
});
