import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import type { ConsoleAction } from '#shared/console/api.ts';
import { clusterName, nodeName, podUid } from '#shared/eviction/identity.ts';
import { NO_REASON } from '#shared/operations/acts/act.ts';
import { perform } from '#shared/operations/acts/perform.ts';
import { aNode, aReason, aRecord, NOW } from '#test/contracts/partition-builders.ts';
import { servedConsole } from './served-console.ts';

const PROD = clusterName('prod');

/** Returns a console of an enforced cluster prod with a pod held by a stop, a scheduled pod, and a failed eviction. */
async function enforced(t: TestContext, clusters = ['prod']) {
  const served = await servedConsole(t, { clusters });
  const { store, fleet, rulesStore } = served;
  const schedule = [
    aRecord({ name: 'held', dueAt: NOW, held: { by: { kind: 'stopped', scope: 'cluster' }, since: NOW } }),
    aRecord({ name: 'waits' }),
    aRecord({ name: 'given-up', uid: podUid('u1'), dueAt: NOW, gaveUpAt: NOW }),
  ];
  const ref = { cluster: PROD, node: nodeName('node-1') };
  await store.commit(ref, 0, { node: aNode(), schedule, end: [], live: true }, NOW);
  const operator = await fleet.operator();
  await perform(
    {
      kind: 'apply-policy',
      cluster: PROD,
      text: '# Ours, by hand.\nmode: enforce # since May\nreleaseRate: 5\n',
    },
    operator,
  );
  const entered = await served.enter();
  const { ask } = entered;
  const confirmed = async (act: ConsoleAction) => {
    const { confirm } = await ask('POST api/preview', act);
    return (await ask('POST api/acts', { act, confirm })).message;
  };
  const orders = async () => (await rulesStore.read(PROD)).orders;
  return { ...served, ...entered, operator, confirmed, orders };
}

test('previews an action with the number of pods that it evicts', async (t) => {
  const { ask, operator, confirmed, orders } = await enforced(t);
  await perform({ kind: 'stop', cluster: PROD, reason: 'an incident' }, operator);
  const act = { kind: 'resume', cluster: PROD, reason: 'it is over' } as const;
  const { confirm: _, ...preview } = await ask('POST api/preview', act);
  assert.deepEqual(preview, {
    cluster: 'prod',
    change: 'Evictions are resumed in cluster prod.',
    effects: [
      '1 pod is due and will be evicted, at 5 per second.',
      '1 more will be evicted at its deadline.',
    ],
    pods: { evictedNow: 1, evictedWhenDue: 1, held: 0 },
  });
  assert.equal((await orders()).stops.length, 1);
  assert.equal(await confirmed(act), 'Evictions are resumed in cluster prod.');
  assert.deepEqual((await orders()).stops, []);
});

test('previews no eviction of pods with another gate, and lists the changes of an action', async (t) => {
  const { ask, operator } = await enforced(t);
  await perform({ kind: 'stop', cluster: PROD, reason: 'an incident' }, operator);
  await perform({ kind: 'stop', reason: 'all of them' }, operator);
  const effectsOf = async (act: ConsoleAction) => (await ask('POST api/preview', act)).effects;
  for (const ended of [{ cluster: PROD }, {}])
    assert.deepEqual(await effectsOf({ kind: 'resume', ...ended, reason: 'x' }), [
      'No pods will be evicted.',
      '2 pods remain held: stopped.',
    ]);
  await perform({ kind: 'resume', reason: 'over' }, operator);
  const target = { kind: 'pod', namespace: 'default', name: 'waits' } as const;
  await perform({ kind: 'hold', cluster: PROD, target, reason: 'mine' }, operator);
  assert.deepEqual(await effectsOf({ kind: 'resume', cluster: PROD, reason: 'x' }), [
    '1 pod is due and will be evicted, at 5 per second.',
    '1 pod remains held: on hold.',
  ]);
  await perform({ kind: 'resume', cluster: PROD, reason: 'over' }, operator);
  assert.deepEqual(await effectsOf({ kind: 'stop', cluster: PROD, reason: 'x' }), [
    '1 pending eviction is held by it, due now.',
    '1 pod remains held: on hold.',
  ]);
});

test('previews a guard release with the pods evicted immediately and those evicted at their deadline', async (t) => {
  const { ask, rulesStore, store } = await enforced(t);
  const causes = [aReason('node.kubernetes.io/unreachable')];
  const trip = { scope: 'cluster', trippedAt: NOW, nodes: 3, outOf: 4 } as const;
  const gate = {
    ...({ kind: 'guard', scope: 'cluster', trippedAt: NOW } as const),
    revision: 1,
    guardRevision: 1,
  };
  const schedule = [
    aRecord({ name: 'due', dueAt: NOW, causes, held: { by: gate, since: NOW } }),
    aRecord({ name: 'later', causes }),
  ];
  const ref = { cluster: PROD, node: nodeName('node-2') };
  await store.commit(ref, 0, { node: aNode(), schedule, end: [], live: true }, NOW);
  await rulesStore.changeGuard(PROD, (await rulesStore.read(PROD)).guard, [trip]);
  const { effects, pods } = await ask('POST api/preview', {
    kind: 'release-guard',
    cluster: PROD,
    reason: 'x',
  });
  assert.deepEqual(pods, { evictedNow: 2, evictedWhenDue: 2, held: 0 });
  assert.deepEqual(effects, [
    '2 pods are due and will be evicted, at 5 per second.',
    '2 more will be evicted at their deadlines.',
  ]);
});

test('returns the effect of an action to the next request', async (t) => {
  const { ask, confirmed } = await enforced(t);
  await confirmed({ kind: 'stop', cluster: PROD, reason: 'an incident' });
  assert.equal((await ask('GET api/status', {})).clusters[0]?.stop?.reason, 'an incident');
});

test('rejects an action without a preview or with an outdated preview', async (t) => {
  const { ask, operator, orders } = await enforced(t);
  const act = { kind: 'stop', cluster: PROD, reason: 'an incident' } as const;
  const { confirm } = await ask('POST api/preview', act);
  await assert.rejects(ask('POST api/acts', { act, confirm: 'guessed' }), /409/);
  await assert.rejects(ask('POST api/acts', { act: { ...act, reason: 'another' }, confirm }), /409/);
  await perform(
    { kind: 'hold', cluster: PROD, target: { kind: 'node', node: nodeName('node-1') }, reason: 'meanwhile' },
    operator,
  );
  await assert.rejects(ask('POST api/acts', { act, confirm }), /409 .*look at it again/);
  assert.deepEqual((await orders()).stops, []);
});

test('requires a new preview after a stop of all clusters, a guard trip, or the end of a stop', async (t) => {
  const { ask, operator, rulesStore, orders, clock } = await enforced(t);
  const act = { kind: 'stop', cluster: PROD, reason: 'an incident' } as const;
  for (const change of [
    () => perform({ kind: 'stop', reason: 'meanwhile', durationMs: 60_000 }, operator),
    async () => {
      const trip = { scope: 'cluster', trippedAt: NOW, nodes: 3, outOf: 4 } as const;
      await rulesStore.changeGuard(PROD, (await rulesStore.read(PROD)).guard, [trip]);
    },
    () => clock.advanceTo(NOW + 60_000),
  ]) {
    const { confirm } = await ask('POST api/preview', act);
    await change();
    await assert.rejects(ask('POST api/acts', { act, confirm }), /409 .*look at it again/);
  }
  assert.deepEqual((await orders()).stops, []);
});

test('releases holds and guard trips, and retries failed evictions', async (t) => {
  const { confirmed, orders, sent, rulesStore, ask } = await enforced(t);
  const target = { kind: 'pod', namespace: 'default', name: 'waits' } as const;
  assert.match(
    await confirmed({ kind: 'hold', cluster: PROD, target, reason: 'mine' }),
    /^Pod default\/waits in cluster prod is held\.$/,
  );
  const [hold] = (await orders()).holds;
  assert.ok(hold);
  await confirmed({ kind: 'release', cluster: PROD, id: hold.id, reason: 'no more' });
  assert.deepEqual((await orders()).holds, []);
  const trip = { scope: 'cluster', trippedAt: NOW, nodes: 3, outOf: 4 } as const;
  await rulesStore.changeGuard(PROD, (await rulesStore.read(PROD)).guard, [trip]);
  await confirmed({ kind: 'release-guard', cluster: PROD, reason: 'known' });
  assert.deepEqual((await rulesStore.read(PROD)).guard.trips, []);
  assert.equal(
    await confirmed({ kind: 'retry', reason: 'mended' }),
    '1 failed eviction is retried in all clusters.',
  );
  assert.match(sent[0] ?? '', /"kind":"retry".*"u1"/);
  const kinds = (await ask('GET api/audit', {})).map(({ kind }) => kind);
  assert.deepEqual(kinds.sort(), ['hold', 'policy', 'release', 'release-guard', 'retry']);
});

test('stops and resumes all clusters together', async (t) => {
  const { confirmed, rulesStore } = await enforced(t);
  await confirmed({ kind: 'stop', reason: 'an incident' });
  assert.equal((await rulesStore.fleetStop())?.reason, 'an incident');
  await confirmed({ kind: 'resume', reason: 'it is over' });
  assert.equal(await rulesStore.fleetStop(), undefined);
});

test('rejects an action without a reason, on an unknown cluster, or without effect in one sentence', async (t) => {
  const { ask } = await enforced(t);
  const refused: [ConsoleAction, RegExp][] = [
    [{ kind: 'resume', cluster: PROD, reason: ' ' }, /400 .*reason: is required/],
    [{ kind: 'stop', cluster: clusterName('none'), reason: 'x' }, /422 .*Cluster .*none.* not found/],
    [{ kind: 'release', cluster: PROD, id: 'h0', reason: 'x' }, /422 .*Hold .*h0.* not found/],
    [{ kind: 'resume', cluster: PROD, id: 's0', reason: 'x' }, /422 .*Stop .*s0.* not found/],
    [{ kind: 'resume', cluster: PROD, reason: 'x' }, /422 .*is not stopped/],
    [{ kind: 'resume', id: 's0', reason: 'x' }, /400 .*id needs a cluster/],
  ];
  for (const [act, expected] of refused) await assert.rejects(ask('POST api/preview', act), expected);
});

test('accepts a stop without a reason and records that in the audit log', async (t) => {
  const { ask, confirmed } = await enforced(t);
  await confirmed({ kind: 'stop', cluster: PROD, reason: '' });
  const [entry] = await ask('GET api/audit', {});
  assert.deepEqual([entry?.kind, entry?.reason], ['stop', NO_REASON]);
});

test('audits a retry of all clusters in each cluster, with the number of its own pods', async (t) => {
  const { confirmed, ask, store } = await enforced(t, ['prod', 'stage']);
  const schedule = [1, 2].map((n) => aRecord({ name: `${n}`, dueAt: NOW, gaveUpAt: NOW }));
  const ref = { cluster: clusterName('stage'), node: nodeName('node-1') };
  await store.commit(ref, 0, { node: aNode(), schedule, end: [], live: true }, NOW);
  await confirmed({ kind: 'retry', reason: 'mended' });
  const audit = (await ask('GET api/audit', {})).filter(({ kind }) => kind === 'retry');
  assert.deepEqual(audit.map(({ cluster, message }) => `${cluster} ${message}`).sort(), [
    'prod retried failed evictions: 1',
    'stage retried failed evictions: 2',
  ]);
});
