import assert from 'node:assert/strict';
import { test } from 'node:test';
import { LACKS } from '#test/aws/localstack.ts';
import { momentComes } from '#test/cluster/rig/on-time.ts';
import { tolerates } from '#test/cluster/rig/tolerations.ts';
import { until } from '#test/cluster/rig/until.ts';
import { guideRows } from '#test/costs/guide-rows.ts';
import type { AwsRequest } from './rig/aws-tap.ts';
import { bill, sum } from './rig/bill.ts';
import { deployed } from './rig/deployed-stage.ts';
import type { RelayProcess } from './rig/relay-process.ts';

const PODS = 50;
/** Five minutes would take the same calls: up to 15 minutes a timer is one delayed message. */
const TOLERATED_SECONDS = 15;
const TARGET_CALLS_PER_POD = 0.6;
const TARGET_DOLLARS_PER_MILLION = 2.6;
/**
 * The part for computing time: 15 ms of 512 MiB each. The time depends on the machine, so it is measured, but not
 * judged. The rest is the cost of 50 pods without failed calls, and four calls.
 */
const COMPUTE_DOLLARS_PER_MILLION = 0.1;

/**
 * The interval at which `evict` reads a cluster's rules again while it waits for an API server. The duration of the
 * wait depends on the machine.
 */
const RULES_READ_EVERY_MS = 700;

/** The allowed difference of calls per pod between the measurement and the guide. */
const TELLING_TOLERANCE = 0.16;

const QUIET_MS = 15_000;
const MONTH_MS = 730 * 3600 * 1000;
const SOON_MS = 30_000;
/** Work has ended when there were no AWS requests except upkeep, and all queues were empty, for this long. */
const SETTLED_MS = 3_000;

const FED = [
  { name: 'node-delta', queue: 'fifo' },
  { name: 'pod-delta', queue: 'fifo' },
  { name: 'evict', queue: 'standard' },
] as const;

/** Requests that a process makes once, when it first writes history: they return the days for which history is kept. */
const ONCE = ['DescribeTable', 'ListTagsOfResource'];

/**
 * Reports whether a request is upkeep: leases, the registry, rules, and the table's tainted nodes, which relays read
 * even for quiet clusters. Relays may read rules with a delay; functions may not, so their reads are part of their
 * work.
 */
const isUpkeep = ({ service, operation, body }: AwsRequest): boolean =>
  service === 'secretsmanager' ||
  (service === 'dynamodb' &&
    (ONCE.includes(operation) ||
      /"LEASE"|"CLUSTERS"|"REGISTRATION"/.test(body) ||
      (/"FLEET"/.test(body) && !/"ConsistentRead":true/.test(body))));
const isWork = (request: AwsRequest): boolean => !isUpkeep(request);

const requestsSince = (at: number): readonly AwsRequest[] => [
  ...deployed().relays.flatMap(({ tap }) => tap.since(at)),
  ...(deployed().account.functionsTap?.since(at) ?? []),
];

const workSince = (at: number) =>
  Promise.all(
    FED.map(async (fed) => ({
      ...fed,
      invocations: await deployed().invocations(fed.name, at),
      logged: await deployed().logged(fed.name, at),
    })),
  );

/**
 * Reports whether a relay has read the pods stuck terminating of a cluster since it acquired the lease. It reads them
 * when it next renews the lease.
 */
function hasReadOf({ lines, tap }: RelayProcess, cluster: string): boolean {
  const taken = lines.findLast(
    (line) => line.event === 'relay.lease-acquired' && line['cluster'] === cluster,
  );
  return tap
    .since(taken?.at ?? Infinity)
    .some(({ body }) => body.includes('"STUCK"') && body.includes(`LEASE#${cluster}"`));
}

/** Waits until no node is tainted, and no work is in progress. */
async function quiet(): Promise<void> {
  const { alpha, beta, queues } = deployed();
  for (const { cluster } of [alpha, beta]) {
    const tainted = [...cluster.witness.nodes].filter(([, moments]) => moments.at(-1)?.taints.length);
    await Promise.all(tainted.map(([node]) => cluster.untaint(node)));
  }
  const relays = await deployed().withRelays(2);
  await until('each relay has a cluster, and has read what is known of it', async () => {
    const owned = await Promise.all(
      relays.map(async (relay) => {
        const live = [...(await relay.states())].filter(([, state]) => state === 'live');
        return live.length > 0 && live.every(([cluster]) => hasReadOf(relay, cluster));
      }),
    );
    return owned.every(Boolean);
  });
  // Timers that were armed for pods that need not be evicted any more.
  await queues.evictionsDue.purge();
  await workEnds();
}

async function workEnds(): Promise<void> {
  const { nodeDeltas, podDeltas, evictionsDue } = deployed().queues;
  let busyAt = Date.now();
  await until('work ends', async () => {
    const depths = await Promise.all([nodeDeltas, podDeltas, evictionsDue].map((queue) => queue.depth()));
    const waits = depths.some(({ visible, inFlight, delayed }) => visible + inFlight + delayed > 0);
    if (waits) busyAt = Date.now();
    const lastAt = Math.max(
      busyAt,
      ...requestsSince(busyAt)
        .filter(isWork)
        .map(({ at }) => at),
    );
    return Date.now() - lastAt > SETTLED_MS;
  });
}

test('makes only lease and poll requests without tainted nodes', async (t) => {
  await quiet();
  const beganAt = Date.now();
  await momentComes(beganAt + QUIET_MS);
  const requests = requestsSince(beganAt);
  const upkeep = requests.filter(isUpkeep);
  assert.deepEqual(
    requests
      .filter((request) => !isUpkeep(request))
      .map(({ service, operation }) => `${service} ${operation}`),
    [],
  );
  const invoked = (await workSince(beganAt)).filter(({ invocations }) => invocations.length > 0);
  assert.deepEqual(invoked, []);
  assert.ok(upkeep.length > 0, 'the relays were there');
  const monthly = bill(
    upkeep.filter(({ service }) => service === 'dynamodb'),
    [],
  ).map(
    ({ what, calls, dollars }) =>
      `${what}: ${calls}, $${((dollars * MONTH_MS) / QUIET_MS).toFixed(2)} a month`,
  );
  t.diagnostic(`2 relays and 2 clusters, in ${QUIET_MS / 1000} s: ${monthly.join('; ')}`);
});

test(`evicts ${PODS} pods of a node with at most ${TARGET_CALLS_PER_POD} AWS calls each, and $${TARGET_DOLLARS_PER_MILLION} per million`, async (t) => {
  const { alpha, account } = deployed();
  if (!account.functionsTap) {
    t.skip(LACKS.tap);
    return;
  }
  await quiet();
  const { cluster } = alpha;
  const node = await cluster.addNode('billed');
  const tolerations = [tolerates('x', TOLERATED_SECONDS)];
  const names = Array.from({ length: PODS }, (_, index) => `billed-${index}`);
  const pods = await Promise.all(names.map((name) => cluster.addPod(node, name, { tolerations })));
  const beganAt = Date.now();
  await cluster.taint(node, { key: 'x' });
  await until(
    'all pods are gone',
    () => pods.every(({ removedAt }) => removedAt !== undefined),
    TOLERATED_SECONDS * 1000 + SOON_MS,
  );
  await workEnds();

  const requests = requestsSince(beganAt).filter(isWork);
  const work = await workSince(beganAt);
  const lines = bill(requests, work);
  const evicting = work.flatMap(({ name, invocations }) => (name === 'evict' ? invocations : []));
  const readAgain = sum(evicting.map(({ durationMs }) => Math.floor(durationMs / RULES_READ_EVERY_MS)));
  const callsPerPod = sum(lines.map(({ calls }) => calls)) / PODS;
  const perMillion = (dollars: number) => (dollars / PODS) * 1_000_000;
  const dollars = perMillion(sum(lines.map((line) => line.dollars)));
  const compute = perMillion(sum(lines.map((line) => line.computeDollars ?? 0)));
  for (const { what, calls, units, dollars: unitDollars } of lines) {
    t.diagnostic(
      `${what}: ${calls} calls, ${units}, $${perMillion(unitDollars).toFixed(3)} per million evictions`,
    );
  }
  t.diagnostic(`${callsPerPod.toFixed(2)} calls per pod, $${dollars.toFixed(2)} per million evictions`);
  assert.ok(callsPerPod - readAgain / PODS <= TARGET_CALLS_PER_POD, `${callsPerPod} calls per pod`);
  const [, written = ''] = guideRows().find(([what]) => what === 'together') ?? [];
  const writtenPerPod = Number(/: ([\d.]+) per pod$/.exec(written)?.[1]);
  assert.ok(Math.abs(callsPerPod - writtenPerPod) <= TELLING_TOLERANCE, `the guide says ${writtenPerPod}`);
  assert.ok(
    dollars - compute <= TARGET_DOLLARS_PER_MILLION - COMPUTE_DOLLARS_PER_MILLION,
    `$${dollars} per million`,
  );
});
