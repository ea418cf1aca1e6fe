import assert from 'node:assert/strict';
import { test } from 'node:test';
import { commandLine } from './command-line.ts';

test('redrives one dead letter by its ID or a prefix of its ID', async (t) => {
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

test('counts the dead letters that SQS does not show, on standard error', async (t) => {
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

test('reports no hidden dead letters when all are shown or --limit cuts the list', async (t) => {
  const { run, letters, state } = commandLine(t);
  for (let count = 0; count < 14; count++)
    letters.add('node-deltas.fifo', { body: '{}' }, 'nobody can read it');
  await run('dead-letters', 'list');
  await run('dead-letters', 'list', '--limit', '5');
  assert.equal(state.complained, '');
});

test('purges the dead letters of a queue after printing the losses and a prompt', async (t) => {
  const { run, letters, state, asked } = commandLine(t);
  for (const reason of ['it was given up', 'it was given up', 'cluster x is not registered'])
    letters.add('evictions-due', { body: '{}' }, reason);
  letters.add('expiry', { body: '{}' }, 'too late');
  state.answer = true;
  assert.equal(
    await run('dead-letters', 'purge', '--queue', 'evictions-due'),
    `3 dead-letter messages of evictions-due. Failed evictions stay failed until taintward retry. The next resync, within 10 minutes, repeats other work.
  2: it was given up
  1: cluster x is not registered
Deleted 3 dead-letter messages of evictions-due.
`,
  );
  assert.deepEqual(asked, ['Delete them? They cannot be restored.']);
  assert.deepEqual([...(await letters.count())], [['expiry', 1]]);
});

test('purges one message by its ID, or all messages of all queues', async (t) => {
  const { run, letters } = commandLine(t);
  letters.add('node-deltas.fifo', { body: '{}' }, 'nobody can read it');
  letters.add('agent-edge-1-evictions-due', { body: '{}' }, 'it was given up');
  letters.add('expiry', { body: '{}' }, 'too late');
  assert.match(
    await run('dead-letters', 'purge', '1', '--yes'),
    /sends the same changes again\.\n {2}1: nobody can read it\nDeleted dead-letter message 1 of node-deltas\.fifo\.\n$/,
  );
  assert.match(
    await run('dead-letters', 'purge', '--all', '--yes'),
    /until taintward retry.*\nDeleted 1 dead-letter message of agent-edge-1-evictions-due\.\nDeleted 1 dead-letter message of expiry\.\n$/s,
  );
  assert.equal((await letters.count()).size, 0);
  assert.equal(await run('dead-letters', 'purge', '--all'), 'No dead-letter messages.\n');
  assert.equal(
    await run('dead-letters', 'purge', '--queue', 'expiry'),
    'No dead-letter messages of expiry.\n',
  );
});

test('prints the most frequent reasons before a purge and counts the others', async (t) => {
  const { run, letters } = commandLine(t);
  for (let pod = 0; pod < 12; pod++) letters.add('evictions-due', { body: '{}' }, `pod ${pod}`);
  assert.match(
    await run('dead-letters', 'purge', '--all', '--yes'),
    /\n {2}1: pod 9\n {2}2 more reasons: see taintward dead-letters list\.\n/,
  );
});

test('purges nothing without confirmation', async (t) => {
  const { run, letters, state } = commandLine(t);
  letters.add('evictions-due', { body: '{}' }, 'it was given up');
  const refused = (message: RegExp) =>
    assert.rejects(run('dead-letters', 'purge', '--all'), { name: 'CliError', message });
  await refused(/^Cannot prompt: .* rerun with --yes\.$/);
  state.answer = false;
  await refused(/^Canceled\. Nothing was changed\.$/);
  assert.equal((await letters.count()).size, 1);
  await assert.rejects(run('dead-letters', 'purge', '1', '--all'), { message: /^Specify exactly one of ID/ });
});

test('rejects redriving an unknown dead letter', async (t) => {
  const { run } = commandLine(t);
  await assert.rejects(run('dead-letters', 'redrive', '2'), {
    name: 'CliError',
    message: /^Dead-letter message "2" not found /,
  });
});

test('rejects redrive without exactly one of ID, --queue, or --all', async (t) => {
  const { run } = commandLine(t);
  for (const args of [[], ['2', '--all'], ['--all', '--queue', 'evictions-due']]) {
    await assert.rejects(run('dead-letters', 'redrive', ...args), {
      name: 'UsageError',
      message: /^Specify exactly one of ID, --queue, or --all/,
    });
  }
});

test('accepts the queue of an agent by name and rejects unknown queues', async (t) => {
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
