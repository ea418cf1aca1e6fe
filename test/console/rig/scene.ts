import type { TestContext } from 'node:test';
import type { Console } from '#shared/console/server.ts';
import { clusterName, type NodeRef, nodeName, podUid } from '#shared/eviction/identity.ts';
import { type Cause, type EvictionRecord, ending, type NodeState } from '#shared/eviction/records.ts';
import { perform } from '#shared/operations/acts/perform.ts';
import { FleetError } from '#shared/operations/fleet/fleet.ts';
import { systemClock } from '#shared/time/clock.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import { embeddedFleet } from '#test/world/embedded-fleet.ts';
import { unansweredConsole } from './unanswered-console.ts';

const SECOND_MS = 1_000;
const MINUTE_MS = 60 * SECOND_MS;
/** The leases of the scene are not renewed, so they last as long as a scene is viewed. */
const SCENE_MS = 10 * MINUTE_MS;
/** A store commits at most this many without splitting the commit. */
const PODS_OF_A_NODE = 90;

const PROD_EU = clusterName('prod-eu');
const PROD_US = clusterName('prod-us');
const STAGING = clusterName('staging');

/** A typical policy of a cluster's owner. */
const POLICY = `mode: enforce                # everything beside it has a default
guard:
  cluster: { percent: 20%, nodes: 3 }
evictionRate: 20                     # pods a second, at most
exclude:
  - namespaces: [kube-system]
`;

const WORKLOADS: readonly (readonly [namespace: string, replicaSet: string])[] = [
  ['shop', 'checkout-7f9c6d5b8'],
  ['shop', 'cart-5d9c7b6f4d'],
  ['payments', 'ledger-6c4b8d9f7'],
  ['search', 'indexer-84f6c9d5b'],
  ['web', 'frontend-59d7c8b6f'],
];

/**
 * Opens the console of three clusters in memory with many concurrent events and `pods` countdowns. One cluster is
 * enforced, with a hold; the guard of one has tripped; one is in observe mode.
 */
export async function openScene(t: Pick<TestContext, 'after'>, pods = 60): Promise<Console> {
  const clock = systemClock;
  const now = clock.now();
  const clusters = [PROD_EU, PROD_US, STAGING];
  const { fleet, store, leases, rulesStore } = embeddedFleet(
    t,
    { clusters, clock },
    {
      kind: 'deployed',
      where: 'table taintward in eu-west-1',
      cluster: async () => {
        throw new FleetError('It is a scene: there is no cluster behind it.');
      },
    },
  );
  const operator = await fleet.operator();
  for (const cluster of [PROD_EU, PROD_US])
    await perform(
      { kind: 'apply-policy', cluster, text: POLICY, reason: 'as agreed with its owners' },
      operator,
    );
  for (const [index, cluster] of clusters.entries()) {
    const lease = await leases.take(cluster, undefined, 'relay-1', now);
    if (lease)
      await leases.renew(lease, {
        renewedAt: now + SCENE_MS,
        lastContactAt: now + SCENE_MS,
        nodes: [214, 388, 24][index] ?? 0,
      });
  }
  const target = {
    kind: 'workload',
    namespace: 'shop',
    owner: { kind: 'Deployment', name: 'cart' },
  } as const;
  const { hold: id = '' } = await perform(
    { kind: 'hold', cluster: PROD_EU, target, reason: 'sale until Monday' },
    operator,
  );
  const trippedAt = now - 4 * MINUTE_MS;
  await rulesStore.changeGuard(PROD_US, (await rulesStore.read(PROD_US)).guard, [
    { scope: 'zone', zone: 'us-east-1b', trippedAt, nodes: 71, outOf: 128 },
  ]);

  const half = Math.ceil(pods / 2);
  for (let from = 0; from < half; from += PODS_OF_A_NODE) {
    const count = Math.min(PODS_OF_A_NODE, half - from);
    const ref = {
      cluster: PROD_EU,
      node: nodeName(`ip-10-1-${from / PODS_OF_A_NODE}-17.eu-west-1.compute.internal`),
    };
    const records = Array.from({ length: count }, (_, index) => countdown(from + index, now));
    await store.commit(
      ref,
      0,
      { node: tainted(now - MINUTE_MS), schedule: records, end: [], live: true },
      now,
    );
    const other = { cluster: PROD_US, node: nodeName(`ip-10-2-${from / PODS_OF_A_NODE}-40.ec2.internal`) };
    const guarded = records.map((record, index) => {
      const trip = { kind: 'guard', scope: 'zone', trippedAt, revision: 1, guardRevision: 1 } as const;
      const uid = podUid(`${record.uid}-us`);
      return index % 45 > 0
        ? { ...record, uid }
        : { ...record, uid, dueAt: now - 3 * MINUTE_MS, held: { by: trip, since: now - 3 * MINUTE_MS } };
    });
    await store.commit(other, 0, { node: tainted(trippedAt), schedule: guarded, end: [], live: true }, now);
  }
  const held: NodeRef = { cluster: PROD_EU, node: nodeName('ip-10-1-77-3.eu-west-1.compute.internal') };
  const drained = [0, 1, 2].map((index): EvictionRecord => {
    const record = pod(
      index * WORKLOADS.length + 1,
      maintenance(now, 60),
      now - 2 * MINUTE_MS,
      now - 3 * MINUTE_MS,
    );
    return {
      ...record,
      uid: podUid(`held-${index}`),
      held: { by: { kind: 'hold', id }, since: now - 2 * MINUTE_MS },
    };
  });
  const releaseRate = {
    ...tainted(now - 3 * MINUTE_MS),
    taints: [{ ...MAINTENANCE, since: now - 3 * MINUTE_MS, known: 'added' as const }],
  };
  await store.commit(held, 0, { node: releaseRate, schedule: drained, end: [], live: true }, now);
  const watched: NodeRef = { cluster: STAGING, node: nodeName('worker-3') };
  const observed = [0, 1, 2, 3].map((index) => {
    const record = pod(index + 40, maintenance(now, 900), now + (13 + index) * MINUTE_MS, now);
    return { ...record, uid: podUid(`staging-${index}`) };
  });
  await store.commit(watched, 0, { node: releaseRate, schedule: observed, end: [], live: true }, now);
  const gone: NodeRef = { cluster: PROD_EU, node: nodeName('ip-10-1-40-9.eu-west-1.compute.internal') };
  for (const { end, at } of past(now)) await store.end(gone, [end], at);

  return unansweredConsole(fleet, 'It is a scene: there is no cluster behind it.');
}

const UNREACHABLE = { key: 'node.kubernetes.io/unreachable', effect: 'NoExecute' } as const;
const MAINTENANCE = { key: 'maintenance', value: 'now', effect: 'NoExecute' } as const;

const tainted = (since: EpochMs): NodeState => ({
  taints: [{ ...UNREACHABLE, since, known: 'added' }],
  version: { epoch: 1, sequence: 1 },
  observedAt: since,
});

const unreachable = (since: EpochMs): Cause => ({
  taint: UNREACHABLE,
  since,
  known: 'added',
  toleration: 0,
  seconds: 300,
});

const maintenance = (since: EpochMs, seconds: number): Cause => ({
  taint: MAINTENANCE,
  since,
  known: 'added',
  toleration: 2,
  seconds,
});

/** Returns a countdown; later pods have later deadlines, in waves. */
function countdown(index: number, now: EpochMs): EvictionRecord {
  const wave = index % 6;
  const dueAt = now + wave * 9 * MINUTE_MS + 40 * SECOND_MS + ((index * 7_919) % (6 * MINUTE_MS));
  return pod(index, unreachable(now - MINUTE_MS), dueAt, now - MINUTE_MS);
}

function pod(index: number, reason: Cause, dueAt: EpochMs, startedAt: EpochMs): EvictionRecord {
  const [namespace, replicaSet] = WORKLOADS[index % WORKLOADS.length] ?? ['default', 'web'];
  return {
    uid: podUid(`00000000-0000-4000-8000-${String(index).padStart(12, '0')}`),
    namespace,
    name: `${replicaSet}-${suffix(index)}`,
    owner: { kind: 'ReplicaSet', name: replicaSet },
    podSince: startedAt - 3 * 24 * 60 * MINUTE_MS,
    startedAt,
    dueAt,
    causes: [reason],
    version: { epoch: 1, sequence: 1 },
  };
}

/** Five letters in the API server's style, always the same ones. */
const LETTERS = 'bcdfghjklmnpqrstvwxz2456789';
const suffix = (index: number): string =>
  Array.from({ length: 5 }, (_, place) =>
    LETTERS.at((index * 31 + 7 * place * place + place * index) % LETTERS.length),
  ).join('');

/** Returns the evictions that ended in the last hour. */
const past = (now: EpochMs) =>
  Array.from({ length: 12 }, (_, index) => {
    const dueAt = now - (index * 4 + 2) * MINUTE_MS;
    const record = {
      ...pod(index + 60, unreachable(dueAt - 5 * MINUTE_MS), dueAt, dueAt - 5 * MINUTE_MS),
      uid: podUid(`past-${index}`),
    };
    return index % 4 === 3
      ? { end: ending(record, { outcome: 'canceled', cancelReason: 'taint-removed' }), at: dueAt - MINUTE_MS }
      : { end: ending(record, { outcome: 'evicted', delayMs: 40 }), at: dueAt + 40 };
  });
