import assert from 'node:assert/strict';
import type { EvictHandlerDeps } from '#functions/evict/handler.ts';
import { UnknownClusterError } from '#shared/access/registered-clusters.ts';
import { settingAside } from '#shared/aws/due-message.ts';
import { evictNode } from '#shared/engine/evict/evict-node.ts';
import { TimerError } from '#shared/engine/timers.ts';
import type { Delta } from '#shared/eviction/facts.ts';
import { type NodeRef, podUid } from '#shared/eviction/identity.ts';
import type { Policy, Rules } from '#shared/eviction/policy.ts';
import type { Partition } from '#shared/eviction/records.ts';
import type { LivePod } from '#shared/kubernetes/api.ts';
import { ApiError } from '#shared/kubernetes/http/api-error.ts';
import { ObjectPermits } from '#shared/state/objects/object-permits.ts';
import type { Permits } from '#shared/state/permits.ts';
import type { RateLimiter } from '#shared/state/rate-limiter.ts';
import { EmbeddedRateLimiter } from '#shared/state/rate-limiter.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import { standings } from '#test/contracts/partition-builders.ts';
import { type RecordingLog, recordingLog } from '#test/contracts/recording-log.ts';
import { liveNode, livePod } from '#test/unit/engine/watch/live-objects.ts';
import { after, at, nodeDelta, pod, ref, rules } from '#test/unit/eviction/builders.ts';
import { DrivenClock } from '#test/world/driven-clock.ts';
import { FakeCluster } from '#test/world/fake-cluster.ts';
import { FakeObjects } from '#test/world/fake-objects.ts';
import { ScriptedQueue } from '#test/world/scripted-queue.ts';
import { ScriptedStore } from '#test/world/scripted-store.ts';

export interface EvictBench extends EvictHandlerDeps {
  readonly clock: DrivenClock;
  readonly cluster: FakeCluster;
  readonly store: ScriptedStore;
  readonly deadLetters: ScriptedQueue;
  readonly log: RecordingLog;
  permits: Permits;
  rates: RateLimiter;
  /** The rules of the cluster. */
  ruling: Rules;
  /** The armed times, in order. */
  readonly armed: EpochMs[];
  /** The number of attempts to arm a timer that fail before one succeeds. */
  timerOutages: number;
  readonly retries: { readonly receiptHandle: string; readonly seconds: number }[];
  /** The delay of each deleted pod, in seconds. */
  readonly lateness: number[];
  /** The number of failed evictions. */
  givenUp: number;
  rivals: number;
  /** The number of times that a server counted as unreachable. */
  silences: number;
}

/**
 * Returns the ports of `evict` in memory. A test can break each port. The time is second 60, at which the
 * scheduled pods are due.
 */
export function evictBench(store = new ScriptedStore()): EvictBench {
  const clock = new DrivenClock(at(60));
  const cluster = new FakeCluster(clock);
  const bench: EvictBench = {
    clock,
    cluster,
    store,
    deadLetters: new ScriptedQueue(),
    setAside: (...failed) => settingAside(bench.deadLetters)(...failed),
    log: recordingLog(),
    rules: async () => bench.ruling,
    ruling: rules,
    armed: [],
    timerOutages: 0,
    retries: [],
    lateness: [],
    givenUp: 0,
    rivals: 0,
    silences: 0,
    timers: {
      arm: async (_ref, fireAts) => {
        if (fireAts.length > 0 && bench.timerOutages > 0) {
          bench.timerOutages -= 1;
          throw new TimerError('no timer could be armed');
        }
        bench.armed.push(...fireAts);
      },
    },
    clusters: {
      api: async (name) => {
        if (name !== ref.cluster) throw new UnknownClusterError(`cluster ${name} is not registered`);
        return cluster;
      },
    },
    visibility: {
      retryIn: async (messages) => {
        bench.retries.push(...messages);
      },
    },
    rates: longBegun(clock),
    permits: new ObjectPermits(new FakeObjects()),
    metrics: {
      podDeleted: (_cluster, seconds) => bench.lateness.push(seconds),
      requestRefused: () => undefined,
      outOfReach: () => {
        bench.silences += 1;
      },
      retried: () => undefined,
      gaveUp: (_cluster, evictions) => {
        bench.givenUp += evictions;
      },
      messageFailing: () => undefined,
      rivalSeen: () => {
        bench.rivals += 1;
      },
      clockSkewed: () => undefined,
    },
  };
  return bench;
}

/** Returns a rate limiter of a process that started long ago. */
export function longBegun(clock: DrivenClock): EmbeddedRateLimiter {
  let stopwatchMs = 0;
  const limiter = new EmbeddedRateLimiter(() => stopwatchMs + clock.now());
  stopwatchMs = 3_600_000;
  return limiter;
}

/**
 * Returns a bench whose store has these deltas, and whose cluster has these pods on the node, with the taint
 * `a`.
 */
export async function benchAfter(
  deltas: readonly Delta[],
  pods: readonly LivePod[],
  store?: ScriptedStore,
): Promise<EvictBench> {
  const bench = evictBench(store);
  await storeIn(bench, ref, after(...deltas));
  bench.cluster.putNode(liveNode('n1', 'a'));
  for (const pod of pods) bench.cluster.putPod(pod);
  return bench;
}

/** Returns a bench where these pods exist and are due. */
export const due = (...pods: readonly LivePod[]): Promise<EvictBench> =>
  benchAfter([nodeDelta(1, { pods: pods.map(({ uid, namespace }) => pod(uid, { namespace })) })], pods);

/** Returns a bench with this number of due pods, under these rules. */
export const duePods = async (count: number, ruling = rules): Promise<EvictBench> =>
  Object.assign(await due(...podsNamed(count)), { ruling });

/** Returns the rules with these fields of the policy. */
export const ruled = (policy: Partial<Policy>, more: Partial<Rules> = {}): Rules => ({
  ...rules,
  ...more,
  policy: { ...rules.policy, ...policy },
});

export const STOP = { scope: 'fleet', who: 'anna', at: at(0), why: 'an incident' } as const;
export const stopped: Rules = { ...rules, stops: [STOP] };

/** Returns the rules with a hold of the node until this second. */
export const heldUntil = (second: number, governing = rules): Rules => {
  const hold = { id: 'h1', target: { kind: 'node', node: ref.node }, until: at(second) } as const;
  return { ...governing, holds: [{ ...hold, who: 'anna', at: at(0), why: 'an incident' }] };
};

type Verb = Parameters<FakeCluster['beforeRequest']>[0];

/** Records the requests, in order; those of the kind `failing` fail with `error`. */
export function requestsOf({ cluster }: EvictBench, failing?: Verb, error?: Error): string[] {
  const requests: string[] = [];
  cluster.beforeRequest = (verb) => {
    requests.push(verb);
    if (verb === failing && error) throw error;
  };
  return requests;
}

/** Makes the first `times` requests of this kind fail. */
export function failing({ cluster }: EvictBench, verb: Verb | 'any', error: Error, times = Infinity): void {
  let left = times;
  cluster.beforeRequest = (asked) => {
    if ((verb === 'any' || asked === verb) && left-- > 0) throw error;
  };
}

/** Evicts at each armed time up to `end`. */
export async function until(bench: EvictBench, end: number): Promise<void> {
  for (let next = bench.armed.shift(); next !== undefined && next <= end; next = bench.armed.shift()) {
    await bench.clock.advanceTo(next);
    await evictNode(ref, bench);
  }
  await bench.clock.advanceTo(end);
}

/** Returns the stored state of a node. */
export const storedIn = ({ store, clock }: EvictBench, of: NodeRef = ref) => store.load(of, clock.now());

export const recordsIn = async (bench: EvictBench, of?: NodeRef) => [
  ...(await storedIn(bench, of)).scheduled.values(),
];

export const recordOf = async (bench: EvictBench, uid = 'u1') =>
  (await storedIn(bench)).scheduled.get(podUid(uid));

/** Returns the kind of gate that holds each pod, by UID; `undefined`: none. */
export const gatesIn = async (bench: EvictBench) =>
  Object.fromEntries((await recordsIn(bench)).map(({ uid, held }) => [uid, held?.by.kind]));

/** Returns the next retry of the node. */
export const retryOf = async (bench: EvictBench) => {
  const { node } = await storedIn(bench);
  return node?.outage ?? node?.retry;
};

/** Advances the time to the next retry, and retries. */
export async function nextTry(bench: EvictBench): Promise<void> {
  const retry = await retryOf(bench);
  assert.ok(retry, 'nothing is to be tried again');
  await bench.clock.advanceTo(Math.max(retry.nextTryAt, bench.clock.now()));
  await evictNode(ref, bench);
}

export const reasonsIn = ({ cluster }: EvictBench) => cluster.events.map(({ reason }) => reason);
export const messagesIn = ({ cluster }: EvictBench) => cluster.events.map(({ message }) => message);

/** Returns the lines of the log with this event. */
export const logged = ({ log }: EvictBench, event: string) =>
  log.lines.filter((line) => line.event === event);

export const isMarked = ({ cluster }: EvictBench): boolean =>
  [...cluster.livePods.values()].some(({ disrupted }) => disrupted);

/** Stores what the relay reported of a node. */
export async function storeIn({ store }: EvictBench, of: NodeRef, told: Partition): Promise<void> {
  const { node, scheduled } = told;
  const change = { ...(node ? { node } : {}), schedule: [...scheduled.values()], end: [], live: true };
  await store.commit(of, 0, change, at(0));
}

export const podsNamed = (count: number): readonly LivePod[] =>
  Array.from({ length: count }, (_, index) => livePod(`u${index + 1}`));

/** Returns the state of each pod, by UID. */
export const statesIn = async ({ store, clock }: EvictBench): Promise<Readonly<Record<string, string>>> =>
  standings(await store.load(ref, clock.now()));

export const deletedFrom = ({ cluster }: EvictBench): readonly string[] =>
  cluster.deletions.map(({ pod }) => pod.uid).sort();

/** Evicts, at this time or now. Returns the UIDs of all pods deleted so far. */
export async function evicts(bench: EvictBench, now = bench.clock.now()): Promise<readonly string[]> {
  await bench.clock.advanceTo(now);
  await evictNode(ref, bench);
  return deletedFrom(bench);
}

/** Evicts, at this time or now. Returns the state of each pod. */
export async function leaves(bench: EvictBench, now?: EpochMs) {
  await evicts(bench, now);
  return statesIn(bench);
}

export const serverError = (status: number, retryAfterSeconds?: number) =>
  new ApiError(`the server answered ${status}`, status, '', retryAfterSeconds);
