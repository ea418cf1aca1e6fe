import type { EvictHandlerDeps } from '#functions/evict/handler.ts';
import { UnknownClusterError } from '#shared/access/registered-clusters.ts';
import { settingAside } from '#shared/aws/due-message.ts';
import { TimerError } from '#shared/engine/timers.ts';
import type { Delta } from '#shared/eviction/facts.ts';
import type { Rules } from '#shared/eviction/policy.ts';
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
import { after, at, ref, rules } from '#test/unit/eviction/builders.ts';
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
  const { node, scheduled } = after(...deltas);
  const change = { ...(node ? { node } : {}), schedule: [...scheduled.values()], end: [], live: true };
  await bench.store.commit(ref, 0, change, at(0));
  bench.cluster.putNode(liveNode('n1', 'a'));
  for (const pod of pods) bench.cluster.putPod(pod);
  return bench;
}

export const podsNamed = (count: number): readonly LivePod[] =>
  Array.from({ length: count }, (_, index) => livePod(`u${index + 1}`));

/** Returns the state of each pod, by UID. */
export const statesIn = async ({ store, clock }: EvictBench): Promise<Readonly<Record<string, string>>> =>
  standings(await store.load(ref, clock.now()));

export const deletedFrom = ({ cluster }: EvictBench): readonly string[] =>
  cluster.deletions.map(({ pod }) => pod.uid).sort();

export const serverError = (status: number, retryAfterSeconds?: number) =>
  new ApiError(`the server answered ${status}`, status, '', retryAfterSeconds);
