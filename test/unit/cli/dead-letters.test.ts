import assert from 'node:assert/strict';
import { test } from 'node:test';
import { commandLine } from './command-line.ts';

test('counts the dead letters that SQS does not show, on standard error', async (t) => {
  const { run, letters, state } = commandLine(t);
  for (let count = 0; count < 14; count++)
    letters.add('node-deltas.fifo', { body: '{}' }, 'nobody can read it');
  letters.add('evictions-due', { body: '{}' }, 'it was given up');
  const { list } = letters;
  t.mock.method(letters, 'list', async (limit: number, queue?: string) =>
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

test('rejects redrive without either --queue or --all', async (t) => {
  const { run } = commandLine(t);
  for (const args of [[], ['--all', '--queue', 'evictions-due']]) {
    await assert.rejects(run('dead-letters', 'redrive', ...args), {
      name: 'UsageError',
      message: /^Specify either --queue or --all/,
    });
  }
});

test('accepts the queue of an agent by name and rejects unknown queues', async (t) => {
  const { run, letters } = commandLine(t);
  letters.add('agent-edge-1-evictions-due', { body: '{}' }, 'it was given up');
  const ofAgent = ['--queue', 'agent-edge-1-evictions-due'];
  letters.add('evictions-due', { body: '{}' }, 'it was given up');
  assert.match(await run('dead-letters', 'list', ...ofAgent), /^ID .*\n1 +agent-edge-1-evictions-due .*\n$/);
  assert.equal(await run('dead-letters', 'list', '--queue=expiry'), 'No dead-letter messages.\n');
  assert.match(
    await run('dead-letters', 'redrive', '--all'),
    /\nSent about 1 dead-letter messages to agent-edge-1-evictions-due again\./,
  );
  await assert.rejects(
    run('dead-letters', 'list', '--queue', 'agents'),
    /Allowed choices are .* of an agent/,
  );
});
