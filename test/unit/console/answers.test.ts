import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Api } from '#shared/console/api.ts';
import { clusterName, nodeName, podUid } from '#shared/eviction/identity.ts';
import type { EvictionRecord } from '#shared/eviction/records.ts';
import { perform } from '#shared/operations/acts/perform.ts';
import { whatText, whyText } from '#shared/operations/look/history-text.ts';
import { policyJsonSchema } from '#shared/state/policy-document.ts';
import { aNode, anEnding, aReason, aRecord, NOW, someRecords } from '#test/contracts/partition-builders.ts';
import { servedConsole } from './served-console.ts';

const PROD = clusterName('prod');
const MINUTE = 60_000;

/** Returns a console of a cluster with these records on its nodes. */
async function consoleOf(
  t: Parameters<typeof servedConsole>[0],
  nodes: Readonly<Record<string, readonly EvictionRecord[]>>,
  clusters: readonly string[] = ['prod'],
) {
  const served = await servedConsole(t, { clusters });
  for (const [name, schedule] of Object.entries(nodes)) {
    const ref = { cluster: PROD, node: nodeName(name) };
    await served.store.commit(ref, 0, { node: aNode(), schedule, end: [], live: true }, NOW);
  }
  const operator = await served.fleet.operator();
  return { ...served, operator, ...(await served.enter()) };
}

test("returns the session's actor, place, time, and action token", async (t) => {
  const { ask, token } = await consoleOf(t, {});
  const session = await ask('GET api/session', {});
  assert.deepEqual(
    { ...session, version: '' },
    { token, actor: 'anna', version: '', place: 'a test', now: NOW },
  );
});

test('returns pending rows with the gate of each, filtered and limited', async (t) => {
  const held = aRecord({
    name: 'held',
    dueAt: NOW - MINUTE,
    held: { by: { kind: 'hold', id: 'h1' }, since: NOW },
  });
  const { ask, operator } = await consoleOf(t, {
    'node-1': [
      held,
      aRecord({ name: 'later', dueAt: NOW + MINUTE, causes: [aReason('maintenance', 'now')] }),
    ],
    'node-2': [
      aRecord({
        name: 'given-up',
        dueAt: NOW - 5 * MINUTE,
        gaveUpAt: NOW,
        failure: { since: NOW, error: 'no' },
      }),
      aRecord({
        name: 'blocked',
        dueAt: NOW,
        blocked: { since: NOW, nextTryAt: NOW + 1, reason: 'budget' },
      }),
      aRecord({
        name: 'refused',
        dueAt: NOW + 1,
        blocked: { since: NOW, nextTryAt: NOW + 1, by: 'admission', reason: 'a webhook' },
      }),
    ],
  });
  await perform({ kind: 'apply-policy', cluster: PROD, text: 'mode: enforce\n' }, operator);
  const { hold: id } = await perform(
    {
      kind: 'hold',
      cluster: PROD,
      target: { kind: 'pod', namespace: 'default', name: 'held' },
      reason: 'a test',
    },
    operator,
  );
  const all = await ask('GET api/pending', {});
  assert.deepEqual(
    all.rows.map(([, cluster, node, namespace, pod, dueAt, state, taints, note, , nextTryAt = NOW]) => [
      ...[cluster, node, namespace, pod, dueAt - NOW, state, taints, note, nextTryAt - NOW],
    ]),
    [
      [
        'prod',
        'node-2',
        'default',
        'given-up',
        -5 * MINUTE,
        'failed',
        'node.kubernetes.io/unreachable:NoExecute',
        'failed at 2026-11-21T12:00:00Z: no',
        0,
      ],
      [
        'prod',
        'node-1',
        'default',
        'held',
        -MINUTE,
        'hold',
        'node.kubernetes.io/unreachable:NoExecute',
        `hold ${id} (anna: a test)`,
        0,
      ],
      [
        'prod',
        'node-2',
        'default',
        'blocked',
        0,
        'blocked',
        'node.kubernetes.io/unreachable:NoExecute',
        'disruption budget since 2026-11-21T12:00:00Z: budget',
        1,
      ],
      [
        'prod',
        'node-2',
        'default',
        'refused',
        1,
        'rejected',
        'node.kubernetes.io/unreachable:NoExecute',
        'admission since 2026-11-21T12:00:00Z: a webhook',
        1,
      ],
      ['prod', 'node-1', 'default', 'later', MINUTE, 'scheduled', 'maintenance=now:NoExecute', '', 0],
    ],
  );
  const names = async (asks: Parameters<typeof ask<'GET api/pending'>>[1]) =>
    (await ask('GET api/pending', asks)).rows.map(([, , , , pod]) => pod);
  assert.deepEqual(await names({ limit: 2 }), ['given-up', 'held']);
  assert.deepEqual(await names({ state: 'hold' }), ['held']);
  assert.deepEqual(await names({ cluster: 'other' }), []);
  await assert.rejects(ask('GET api/pending', { limit: 1_000_000 }), /^Error: 400 .*limit/);
});

test('returns the state of each cluster and the required actions, most urgent first', async (t) => {
  const late = aRecord({ name: 'late', dueAt: NOW - 2 * MINUTE });
  const given = aRecord({ name: 'given-up', dueAt: NOW - MINUTE, gaveUpAt: NOW });
  const { ask, operator, leases } = await consoleOf(t, { 'node-1': [late, given, aRecord()] });
  const lease = await leases.take(PROD, undefined, 'relay', NOW - 5 * MINUTE);
  assert.ok(lease);
  await leases.renew(lease, { renewedAt: NOW, lastContactAt: NOW - 5 * MINUTE, nodes: 9 });
  await perform({ kind: 'stop', cluster: PROD, reason: 'a drill', durationMs: MINUTE }, operator);
  const { issues, clusters } = await ask('GET api/status', {});
  assert.deepEqual(
    issues.map(({ type, message }) => [type, message]),
    [
      [
        'disconnected',
        'relay holds its lease, but is disconnected from the cluster, so changes of nodes and pods are missed.',
      ],
      ['failed', '1 eviction failed.'],
      ['stopped', 'Stopped until 2026-11-21T12:01:00Z by anna: a drill.'],
    ],
  );
  const [prod] = clusters;
  assert.ok(prod);
  const { mode, connection, nodes, tainted, pending, delayMs, nextAt } = prod;
  assert.deepEqual(
    { mode, connectionState: connection, nodes, tainted, pending, delayMs, nextAt },
    {
      mode: 'observe',
      connectionState: 'disconnected',
      nodes: 9,
      tainted: 1,
      pending: 3,
      delayMs: 0,
      nextAt: NOW + 5 * MINUTE,
    },
  );
  assert.deepEqual([prod.due, prod.heldBy, prod.failed], [2, { stopped: 1 }, 1]);
});

test('returns what each trip of the guard holds, by its taints and nodes', async (t) => {
  const of = (name: string, key: string) =>
    aRecord({ name, uid: podUid(name), dueAt: NOW, causes: [aReason(key)] });
  const { ask, operator, rulesStore } = await consoleOf(t, {
    'node-1': [of('a', 'maintenance'), of('b', 'node.kubernetes.io/unreachable')],
    'node-2': [of('c', 'maintenance'), of('d', 'node.kubernetes.io/out-of-service')],
  });
  await perform({ kind: 'apply-policy', cluster: PROD, text: 'mode: enforce' }, operator);
  const trip = { trippedAt: NOW, nodes: 6, outOf: 10 };
  await rulesStore.changeGuard(PROD, (await rulesStore.read(PROD)).guard, [
    { scope: 'cluster', ...trip },
    { scope: 'customTaints', ...trip },
  ]);
  const { clusters } = await ask('GET api/status', {});
  assert.deepEqual(
    clusters[0]?.trips?.map(({ scope, pods, onNodes, taints }) => [scope, pods, onNodes, taints]),
    [
      ['cluster', 1, 1, ['node.kubernetes.io/unreachable:NoExecute']],
      ['customTaints', 2, 2, ['maintenance:NoExecute']],
    ],
  );
});

test("reports a cluster that can't be read next to the others", async (t) => {
  const { ask, rulesStore } = await consoleOf(t, { 'node-1': [aRecord()] }, ['prod', 'torn']);
  const read = rulesStore.read.bind(rulesStore);
  t.mock.method(rulesStore, 'read', async (cluster: typeof PROD) => {
    if (cluster !== PROD) throw new Error('it was written by a newer release');
    return read(cluster);
  });
  const { clusters, issues } = await ask('GET api/status', {});
  assert.deepEqual(
    clusters.map(({ cluster, pending, error }) => [cluster, pending, error]),
    [
      ['prod', 1, undefined],
      ['torn', undefined, 'it was written by a newer release'],
    ],
  );
  assert.deepEqual([issues[0]?.type, issues[0]?.cluster], ['unreadable', 'torn']);
});

test('holds and releases several targets at once, or none of them', async (t) => {
  const { ask, operator, rulesStore } = await consoleOf(t, {
    'node-1': ['a', 'b', 'c'].map((name) => aRecord({ name, uid: podUid(name), dueAt: NOW + MINUTE })),
  });
  await perform({ kind: 'apply-policy', cluster: PROD, text: 'mode: enforce' }, operator);
  const pod = (name: string) => ({ kind: 'pod', namespace: 'default', name }) as const;
  const hold = { kind: 'hold', cluster: 'prod', target: pod('a'), others: [pod('b')], reason: 'x' } as const;
  const { change, effects, confirm } = await ask('POST api/preview', hold);
  assert.equal(change, 'Pod default/a, pod default/b in cluster prod are held.');
  assert.deepEqual(effects, ['2 pending evictions are held by it.']);
  await ask('POST api/acts', { act: hold, confirm });
  const { groups } = await ask('GET api/groups', { by: 'node' });
  const [{ target, holds, pending } = assert.fail()] = groups;
  assert.deepEqual([target, holds.length, pending], [{ kind: 'node', node: 'node-1' }, 2, 3]);
  assert.deepEqual((await ask('GET api/groups', { by: 'node', state: 'hold' })).groups[0]?.pending, 2);
  const [first = '', second = ''] = holds;
  const release = { kind: 'release', cluster: 'prod', id: first, others: [second], reason: 'x' } as const;
  const none = { ...release, others: ['h0'] };
  await assert.rejects(ask('POST api/preview', none), /Hold \\"h0\\" not found/);
  const turned = await ask('POST api/preview', { ...release, id: second, others: [first] });
  assert.match(
    turned.change,
    new RegExp(`^Holds ${second}, ${first} are released: pod default/b, pod default/a `),
  );
  const shown = await ask('POST api/preview', release);
  await ask('POST api/acts', { act: release, confirm: shown.confirm });
  assert.deepEqual((await rulesStore.read(PROD)).orders.holds, []);
  const [entry] = await ask('GET api/audit', {});
  assert.equal(entry?.message, `released pod default/a, pod default/b (${first}, ${second})`);
});

test('groups by workload with a target that holds all of the group, and says what is unknown', async (t) => {
  const web = { kind: 'ReplicaSet', name: 'web-5d4f8c7b9d' };
  const { ask } = await consoleOf(t, {
    'node-1': [
      aRecord({ name: 'x', uid: podUid('x'), owner: web }),
      aRecord({ name: 'alone', uid: podUid('y') }),
    ],
  });
  const { groups, unknown } = await ask('GET api/groups', { by: 'workload' });
  assert.deepEqual(
    groups.map(({ name, target }) => [name, target]),
    [
      ['default/Pod/alone', { kind: 'pod', namespace: 'default', name: 'alone' }],
      ['default/ReplicaSet/web-5d4f8c7b9d', { kind: 'workload', namespace: 'default', owner: web }],
    ],
  );
  assert.deepEqual(unknown, ['The workloads of cluster prod are unknown: it cannot be asked.']);
});

test('counts evictions and held pods for each minute of the next hour', async (t) => {
  const web = { kind: 'ReplicaSet', name: 'web-5d4f8c7b9d' };
  const { ask, operator } = await consoleOf(t, {
    'node-1': [
      aRecord({ dueAt: NOW - MINUTE }),
      aRecord({ dueAt: NOW + 10_000 }),
      aRecord({ dueAt: NOW + 5 * MINUTE }),
      aRecord({ dueAt: NOW + 5 * MINUTE, owner: web }),
      aRecord({ dueAt: NOW + 59 * MINUTE }),
      aRecord({ dueAt: NOW + 61 * MINUTE }),
      aRecord({ dueAt: NOW, held: { by: { kind: 'stopped', scope: 'cluster' }, since: NOW } }),
    ],
  });
  await perform({ kind: 'apply-policy', cluster: PROD, text: 'mode: enforce' }, operator);
  const target = {
    kind: 'workload',
    namespace: 'default',
    owner: { kind: 'Deployment', name: 'web' },
  } as const;
  await perform({ kind: 'hold', cluster: PROD, target, reason: 'a test' }, operator);
  await perform({ kind: 'stop', cluster: PROD, reason: 'a test', durationMs: 4 * MINUTE }, operator);
  const { from, minutes, later } = await ask('GET api/timeline', {});
  assert.deepEqual([from, minutes.length, later], [NOW, 60, 1]);
  const counts = minutes.flatMap((minute, index) =>
    Object.values(minute).some((count) => count > 0) ? [[index, minute]] : [],
  );
  assert.deepEqual(counts, [
    [0, { evict: 0, held: 3, observed: 0 }],
    [5, { evict: 1, held: 1, observed: 0 }],
    [59, { evict: 1, held: 0, observed: 0 }],
  ]);
});

test('counts evictions under a rate when those before them have had their turn', async (t) => {
  const records = Array.from({ length: 90 }, () => aRecord({ dueAt: NOW }));
  const { ask, operator } = await consoleOf(t, { 'node-1': records });
  await perform({ kind: 'apply-policy', cluster: PROD, text: 'mode: enforce\nevictionRate: 1' }, operator);
  const { minutes } = await ask('GET api/timeline', {});
  assert.deepEqual(
    minutes.map(({ evict }) => evict),
    [60, 30, ...Array(58).fill(0)],
  );
});

test('counts observed evictions of a cluster in observe mode', async (t) => {
  const { ask } = await consoleOf(t, { 'node-1': [aRecord({ dueAt: NOW + MINUTE })] });
  const { minutes } = await ask('GET api/timeline', { cluster: 'prod' });
  assert.deepEqual(minutes[1], { evict: 0, held: 0, observed: 1 });
});

test('sorts rows with equal deadlines by name', async (t) => {
  const names = ['d', 'a', 'c', 'b', 'e'];
  const { ask } = await consoleOf(t, {
    'node-1': names.map((name) => aRecord({ name, dueAt: NOW })),
    'node-2': names.map((name) => aRecord({ name: `${name}2`, dueAt: NOW })),
  });
  const { rows } = await ask('GET api/pending', {});
  const found = rows.map(([, , , , pod]) => pod);
  assert.deepEqual(found, found.toSorted());
  assert.equal(found.length, 10);
});

test('returns ten thousand pending rows in at most 10 s, as one tuple each', async (t) => {
  const nodes = Object.fromEntries(
    Array.from({ length: 100 }, (_, index) => [`node-${index}`, someRecords(100)]),
  );
  const { ask } = await consoleOf(t, nodes);
  const began = performance.now();
  const { rows, total } = await ask('GET api/pending', { limit: 20_000 });
  const tookMs = performance.now() - began;
  assert.deepEqual([rows.length, total], [10_000, 10_000]);
  assert.ok(tookMs < 10_000, `${tookMs} ms`);
  t.diagnostic(`${Math.round(tookMs)} ms, ${JSON.stringify(rows).length} bytes`);
});

test('lists tainted nodes with their taints and numbers of pending pods', async (t) => {
  const { ask, operator } = await consoleOf(t, {
    'node-1': [aRecord({ dueAt: NOW + MINUTE }), aRecord({ name: 'kept', dueAt: NOW })],
    'node-2': [],
  });
  const target = { kind: 'pod', namespace: 'default', name: 'kept' } as const;
  await perform({ kind: 'hold', cluster: PROD, target, reason: 'a test' }, operator);
  const rows = await ask('GET api/nodes', { cluster: 'prod' });
  assert.deepEqual(
    rows.map(({ node, pending, held, nextAt, taints }) => [node, pending, held, nextAt, taints.length]),
    [
      ['node-1', 2, 1, NOW + MINUTE, 1],
      ['node-2', 0, 0, undefined, 1],
    ],
  );
});

test('returns history newest first, filtered by event, and reports whether there is more', async (t) => {
  const { ask, store } = await consoleOf(t, {});
  const ref = { cluster: PROD, node: nodeName('node-1') };
  for (const index of [1, 2, 3]) {
    const record = aRecord({ name: `web-${index}`, uid: podUid(`u${index}`), startedAt: NOW - 9 * MINUTE });
    await store.end(ref, [anEnding(record)], NOW - index * MINUTE);
  }
  const podsOf = ({ entries }: Api['GET api/history']['answer']) =>
    entries.map(({ entry }) => 'pod' in entry && entry.pod);
  const done = await ask('GET api/history', { event: 'evicted', limit: 2 });
  assert.deepEqual([podsOf(done), done.more], [['web-1', 'web-2'], true]);
  const older = await ask('GET api/history', { event: 'evicted', to: NOW - 3 * MINUTE });
  assert.deepEqual([podsOf(older), older.more], [['web-3'], false]);
  assert.deepEqual((await ask('GET api/history', { pod: 'web-2' })).entries.length, 3);
});

test('merges taints, evictions, and acts into one timeline, and into CSV that no spreadsheet runs', async (t) => {
  const { ask, store, operator, clock, send, own, path } = await consoleOf(t, {});
  const end = async (name: string, at: number, since: number) => {
    const causes = [{ ...aReason('maintenance', 'now'), since }];
    const record = aRecord({ uid: podUid(name), name, startedAt: NOW - 9 * MINUTE, causes });
    await store.end({ cluster: PROD, node: nodeName(`node-${name}`) }, [anEnding(record)], at);
  };
  await end('first', NOW - 5 * MINUTE, NOW - 10 * MINUTE);
  const target = { kind: 'pod', namespace: 'default', name: 'x' } as const;
  await perform({ kind: 'hold', cluster: PROD, target, reason: 'a "test"' }, { ...operator, actor: '=1+1' });
  await end('last', NOW + MINUTE, NOW - 10 * MINUTE + 1);
  await clock.advanceTo(NOW + 2 * MINUTE);
  const { entries } = await ask('GET api/history', {});
  assert.deepEqual(
    entries.map((shown) => `${(shown.entry.at - NOW) / MINUTE} ${whatText(shown)}`),
    ['1 evicted', '0 hold', '-5 evicted', '-9 scheduled', '-9 scheduled', '-10 tainted'],
  );
  assert.equal(whyText(entries.at(-1) ?? assert.fail()), 'maintenance=now:NoExecute on 2 nodes');
  const page = await ask('GET api/history', { limit: 1 });
  assert.deepEqual([page.entries.map(whatText), page.more], [['evicted', 'tainted'], true]);
  assert.deepEqual((await ask('GET api/history', { pod: 'none' })).entries, []);

  const { body, headers } = await send('GET', `${path}api/history.csv`, own);
  assert.equal(headers['content-type'], 'text/csv; charset=utf-8');
  const lines = body.split('\r\n');
  assert.match(lines[0] ?? '', /^"TIME","CLUSTER","WHAT","POD",/);
  assert.match(lines[1] ?? '', /"tainted".*"maintenance=now:NoExecute on 2 nodes"$/);
  assert.match(lines[5] ?? '', /"hold".*"'=1\+1","","held pod default\/x \(h\w+\): a ""test"""$/);
});

test('returns a policy as written and audits its author', async (t) => {
  const { ask, operator } = await consoleOf(t, {});
  assert.match((await ask('GET api/policy', { cluster: 'prod' })).text, /^mode: observe/);
  await perform(
    { kind: 'apply-policy', cluster: PROD, text: '# ours\nmode: enforce\n', reason: 'a test' },
    operator,
  );
  const { schema, ...shown } = await ask('GET api/policy', { cluster: 'prod' });
  assert.deepEqual(shown, { cluster: 'prod', revision: 1, text: '# ours\nmode: enforce\n' });
  assert.deepEqual(schema, policyJsonSchema());
  const [entry] = await ask('GET api/audit', {});
  assert.deepEqual([entry?.actor, entry?.kind, entry?.reason], ['anna', 'policy', 'a test']);
  await assert.rejects(ask('GET api/policy', { cluster: 'none' }), /404 .*There is no cluster none/);
});

test('passes on the parsed questions about a pod, a node, and a taint', async (t) => {
  const { ask } = await consoleOf(t, {});
  const pod = { cluster: 'prod', namespace: 'default', pod: 'web-0' };
  assert.deepEqual(await ask('GET api/explain/pod', pod), { question: pod });
  const node = { cluster: 'prod', node: 'node-1' };
  assert.deepEqual(await ask('GET api/explain/node', node), { question: node });
  const tolerations = { cluster: 'prod', namespace: 'shop', kind: 'Deployment', name: 'web' };
  const list = [{ key: 'a', operator: 'Exists' }];
  assert.deepEqual(await ask('GET api/tolerations', { ...tolerations, list: JSON.stringify(list) }), {
    question: { ...tolerations, list, pods: false },
  });
  for (const wrong of ['[', '[{"seconds":1}]', '[{"tolerationSeconds":"1"}]'])
    await assert.rejects(ask('GET api/tolerations', { ...tolerations, list: wrong }), /400/);
  const whatIf = { cluster: 'prod', taint: 'maintenance=now:NoExecute' };
  assert.deepEqual(await ask('GET api/what-if', whatIf), { question: whatIf });
});

test('taints nodes only in the simulated cluster', async (t) => {
  const real = await consoleOf(t, {});
  const asks = { node: 'node-1', taint: 'maintenance:NoExecute' };
  await assert.rejects(real.ask('POST api/demo/taint', asks), /404 .*no simulated cluster/);
  const done: string[] = [];
  const demo = {
    cluster: PROD,
    nodes: () => [{ node: 'node-1', taints: [], pods: [] }],
    taint: (...what: string[]) => void done.push(`taint ${what.join(' ')}`),
    untaint: (...what: string[]) => void done.push(`untaint ${what.join(' ')}`),
  };
  const { ask } = await (await servedConsole(t, { demo })).enter();
  assert.deepEqual((await ask('GET api/session', {})).demo, { cluster: 'prod' });
  assert.deepEqual(await ask('GET api/demo/nodes', {}), [{ node: 'node-1', taints: [], pods: [] }]);
  await ask('POST api/demo/taint', asks);
  await ask('POST api/demo/untaint', asks);
  assert.deepEqual(done, ['taint node-1 maintenance:NoExecute', 'untaint node-1 maintenance:NoExecute']);
});
