import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { clusterName, nodeName } from '#shared/eviction/identity.ts';
import { eventually } from '#test/contracts/eventually.ts';
import { opened } from '#test/world/console-client.ts';
import { NpmStart } from '#test/world/npm-start.ts';

const CLUSTER = clusterName('simulated');
const NODE = nodeName('node-1');
const LINK = /http:\/\/127\.0\.0\.1:\d+\/\?key=\S+/;
const TAINT = 'maintenance=now:NoExecute';

/** Starts `npm start` with the simulated cluster; `until` returns the next match in its output, for example a link. */
function started(t: TestContext, ...args: string[]) {
  const service = new NpmStart(t, args);
  const until = (pattern: RegExp) => service.line((line) => pattern.exec(line)?.[0]);
  return { until, type: service.type, exit: service.exit };
}

test('npm start prints a link to its console, in which taints evict pods and a stop keeps them', async (t) => {
  const { until, type } = started(t);
  await until(/^To taint nodes in the console, type "console" for a link/);
  await until(/watching \(nodes: 4/);
  type('console');
  const link = await until(LINK);
  const { request } = await opened(link);
  assert.deepEqual((await request('GET api/session', {})).demo, { cluster: 'simulated' });
  const nodes = await request('GET api/demo/nodes', {});
  assert.deepEqual([nodes.length, nodes.every(({ pods }) => pods.length > 0)], [4, true]);

  const stop = { kind: 'stop', cluster: CLUSTER, reason: 'a test' } as const;
  const { confirm } = await request('POST api/preview', stop);
  await request('POST api/acts', { act: stop, confirm });
  await request('POST api/demo/taint', { node: NODE, taint: TAINT });
  await eventually(async () => {
    const { rows } = await request('GET api/pending', { state: 'stopped' });
    assert.ok(rows.length > 0, 'the pods of web are due at once, and held');
  });
  const [node] = await request('GET api/nodes', {});
  assert.deepEqual([node?.node, node?.taints.map(({ key }) => key)], ['node-1', ['maintenance']]);

  const resume = { kind: 'resume', cluster: CLUSTER, reason: 'it is over' } as const;
  // The console's data may be seconds old on a busy machine, and an outdated preview is rejected.
  await eventually(async () => {
    const shown = await request('POST api/preview', resume);
    assert.ok(shown.pods.evictedNow > 0);
    await request('POST api/acts', { act: resume, confirm: shown.confirm });
  });
  await eventually(async () => {
    const { entries } = await request('GET api/history', { event: 'evicted' });
    assert.ok(entries.length > 0, 'the pods are evicted');
  });
  const story = await request('GET api/explain/node', { cluster: CLUSTER, node: NODE });
  assert.match(story.headline, /^node-1 has maintenance=now:NoExecute/);
  await request('POST api/demo/untaint', { node: NODE, taint: 'maintenance' });
  await eventually(async () => assert.deepEqual(await request('GET api/nodes', {}), []));

  assert.equal((await fetch(link)).status, 401, 'a link counts once');
  type('console');
  const another = await opened(await until(LINK));
  assert.equal(another.entered.status, 200);
});

test('npm start --no-console has no console, and its prompt explains it', async (t) => {
  const { until, type, exit } = started(t, '--no-console');
  assert.equal(await until(/"console"|nodes \| pods/), 'nodes | pods');
  type('console');
  await until(/The console is disabled. To enable it, restart without --no-console/);
  for (const [typed, pattern] of [
    ['taint node-1', /^Specify a node/],
    ['untaint node-1', /^Specify a node/],
    ['taint node-9 a:NoExecute', /^Node "node-9" not found/],
    [' taint node-2 a=b:NoSchedule\nnodes', /^ {2}node-1 {2}untainted/],
    ['', /^ {2}node-2 {2}a=b:NoSchedule/],
    ['untaint node-2 a\nnodes', /^ {2}node-2 {2}untainted/],
    ['pods node-2', /^ {2}node-2 {2}\S+\/\S+ {2}\w+/],
    ['help', /^ {2}taint NODE KEY/],
    ['x', /^Unknown command "x"/],
  ] as const) {
    type(typed);
    await until(pattern);
  }
  type('exit');
  assert.equal((await exit).code, 0);
});
