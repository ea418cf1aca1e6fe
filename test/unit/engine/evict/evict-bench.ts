import assert from 'node:assert/strict';
import { test } from 'node:test';
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
import { EmbeddedPermits } from '#shared/state/embedded-permits.ts';
import { objectPermits } from '#shared/state/objects/object-permits.ts';
import type { Permits } from '#shared/state/permits.ts';
import { GIVEN_UP, OUT_OF_REACH, POD_DELETION_DURATION, RIVALS } from '#shared/telemetry/metrics.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import { outcomesOf } from '#test/contracts/partition-builders.ts';
import { recordingLog } from '#test/contracts/recording-log.ts';
import { liveNode, livePod } from '#test/unit/engine/watch/live-objects.ts';
import { after, at, nodeDelta, pod, ref, rules } from '#test/unit/eviction/builders.ts';
import { DrivenClock } from '#test/world/driven-clock.ts';
import { FakeCluster } from '#test/world/fake-cluster.ts';
import { FakeObjects } from '#test/world/fake-objects.ts';
import { ScriptedQueue } from '#test/world/scripted-queue.ts';
import { ScriptedStore } from '#test/world/scripted-store.ts';

type Verb = Parameters<FakeCluster['beforeRequest']>[0];

/**
 * The ports of `evict` in memory, and what they saw. A test can break each port. The time is second 60, at which the
 * scheduled pods are due.
 */
export class EvictBench implements EvictHandlerDeps {
  readonly clock = new DrivenClock(at(60));
  readonly cluster = new FakeCluster(this.clock);
  readonly store: ScriptedStore;
  readonly deadLetters = new ScriptedQueue();
  readonly setAside: EvictHandlerDeps['setAside'] = (...failed) => settingAside(this.deadLetters)(...failed);
  readonly log = recordingLog();
  permits: Permits = longBegun(this.clock);
  /** The rules of the cluster. */
  ruling: Rules;
  readonly rules: EvictHandlerDeps['rules'] = async () => this.ruling;
  /** The armed times, in order. */
  readonly armed: EpochMs[] = [];
  /** The number of attempts to arm a timer that fail before one succeeds. */
  timerOutages = 0;
  readonly retries: { readonly receiptHandle: string; readonly seconds: number }[] = [];
  /** The delay of each deleted pod, in seconds. */
  readonly lateness: number[] = [];
  /** The number of failed evictions. */
  givenUp = 0;
  rivals = 0;
  /** The number of times that a server counted as unreachable. */
  silences = 0;

  readonly timers: EvictHandlerDeps['timers'] = {
    arm: async (_ref, times) => {
      if (times.length > 0 && this.timerOutages > 0) {
        this.timerOutages -= 1;
        throw new TimerError('no timer could be armed');
      }
      this.armed.push(...times);
    },
  };
  readonly clusters: EvictHandlerDeps['clusters'] = {
    api: async (name) => {
      if (name !== ref.cluster) throw new UnknownClusterError(`cluster ${name} is not registered`);
      return this.cluster;
    },
  };
  readonly visibility: EvictHandlerDeps['visibility'] = {
    retryIn: async (messages) => {
      this.retries.push(...messages);
    },
  };
  readonly metrics: EvictHandlerDeps['metrics'] = {
    put: (name, value) => {
      if (name === POD_DELETION_DURATION) this.lateness.push(value);
      if (name === OUT_OF_REACH) this.silences += value;
      if (name === GIVEN_UP) this.givenUp += value;
      if (name === RIVALS) this.rivals += value;
    },
  };

  constructor(store = new ScriptedStore(), ruling = rules) {
    this.store = store;
    this.ruling = ruling;
  }

  /** Stores what the relay reported of a node. */
  async stores(nodeRef: NodeRef, { node, scheduled }: Partition): Promise<void> {
    const change = { ...(node ? { node } : {}), schedule: [...scheduled.values()], end: [], live: true };
    await this.store.commit(nodeRef, 0, change, at(0));
  }

  /** Evicts once, with these ports in place of the bench's. */
  pass(ports: Partial<EvictHandlerDeps> = {}, cameBefore = false) {
    return evictNode(ref, { ...this, ...ports }, cameBefore);
  }

  /** Evicts as for a message that is redelivered. */
  redelivered = () => this.pass({}, true);

  /** Evicts, at this time or now. Returns the UIDs of all pods deleted so far. */
  async evicts(now = this.clock.now()): Promise<readonly string[]> {
    await this.clock.advanceTo(now);
    await this.pass();
    return this.deleted;
  }

  /** Evicts, at this time or now. Returns the state of each pod. */
  async leaves(now?: EpochMs) {
    await this.evicts(now);
    return this.states();
  }

  /** Evicts at each armed time up to `end`. */
  async until(end: number): Promise<void> {
    for (let next = this.armed.shift(); next !== undefined && next <= end; next = this.armed.shift())
      await this.evicts(next);
    await this.clock.advanceTo(end);
  }

  /** Advances the time to the next retry, and retries. */
  async nextTry(): Promise<void> {
    const retry = await this.retry();
    assert.ok(retry, 'nothing is to be tried again');
    await this.evicts(Math.max(retry.nextTryAt, this.clock.now()));
  }

  /** Records the requests, in order; those of the kind `failing` fail with `error`. */
  requests(failing?: Verb, error?: Error): string[] {
    const requests: string[] = [];
    this.cluster.beforeRequest = (verb) => {
      requests.push(verb);
      if (verb === failing && error) throw error;
    };
    return requests;
  }

  /** Makes the first `times` requests of this kind fail. */
  fails(verb: Verb | 'any', error: Error, times = Infinity): void {
    let left = times;
    this.cluster.beforeRequest = (requested) => {
      if ((verb === 'any' || requested === verb) && left-- > 0) throw error;
    };
  }

  /** Makes every request succeed again. */
  recovers(): void {
    this.cluster.beforeRequest = () => undefined;
  }

  /** Has this happen before each request of a kind is answered. The number counts them, from 1. */
  before(verb: Verb, happens: (count: number) => unknown): void {
    let count = 0;
    this.cluster.beforeRequest = (requested) => requested === verb && happens(++count);
  }

  /** Lets this time pass while something else waits. */
  delay = (ms: number) => this.clock.advanceTo(this.clock.now() + ms);

  /** Returns the stored state of a node. */
  stored = (of: NodeRef = ref) => this.store.load(of, this.clock.now());

  records = async (of?: NodeRef) => [...(await this.stored(of)).scheduled.values()];

  record = async (uid = 'u1') => (await this.stored()).scheduled.get(podUid(uid));

  /** Returns the state of each pod, by UID. */
  states = async () => outcomesOf(await this.stored());

  /** Returns the kind of gate that holds each pod, by UID; `undefined`: none. */
  gates = async () => Object.fromEntries((await this.records()).map(({ uid, held }) => [uid, held?.by.kind]));

  /** Returns the next retry of the node. */
  async retry() {
    const { node } = await this.stored();
    return node?.outage ?? node?.retry;
  }

  get deleted(): readonly string[] {
    return this.cluster.deletions.map(({ pod }) => pod.uid).sort();
  }

  /** Returns the seconds at which pods were deleted, after `start`. */
  deletedAfter = (start: number) =>
    this.cluster.deletions.map((deletion) => (deletion.at - at(start)) / 1000);

  get isMarked(): boolean {
    return [...this.cluster.livePods.values()].some(({ disrupted }) => disrupted);
  }

  get causes(): readonly string[] {
    return this.cluster.events.map(({ reason }) => reason);
  }

  get messages(): readonly string[] {
    return this.cluster.events.map(({ message }) => message);
  }

  /** Returns all that cases can expect of a pass. */
  async seen() {
    const records = await this.records();
    return {
      deleted: this.deleted,
      states: await this.states(),
      gates: await this.gates(),
      armed: this.armed.map((moment) => (moment - at(0)) / 1000),
      events: this.messages,
      log: this.log.lines.map(({ event }) => event),
      isMarked: this.isMarked,
      failures: records.map(({ failure }) => failure?.error),
      blocked: records.map(({ blocked }) => blocked?.reason),
    };
  }

  /** Returns the lines of the log with this event. */
  logged = (event: string) => this.log.lines.filter((line) => line.event === event);
}

/** Returns the permits of a process that started long ago. */
export function longBegun(clock: DrivenClock): EmbeddedPermits {
  let stopwatchMs = 0;
  const permits = new EmbeddedPermits(() => stopwatchMs + clock.now(), objectPermits(new FakeObjects()));
  stopwatchMs = 3_600_000;
  return permits;
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
  const bench = new EvictBench(store);
  await bench.stores(ref, after(...deltas));
  bench.cluster.putNode(liveNode('n1', 'a'));
  for (const pod of pods) bench.cluster.putPod(pod);
  return bench;
}

/** Returns a bench where these pods exist and are due. */
export const due = (...pods: readonly LivePod[]): Promise<EvictBench> =>
  benchAfter([nodeDelta(1, { pods: pods.map(({ uid, namespace }) => pod(uid, { namespace })) })], pods);

/** Returns a bench whose store has these pods, with their tolerations, and whose cluster has them on the node. */
export const asReported = (...pods: readonly LivePod[]): Promise<EvictBench> => {
  const facts = pods.map(({ uid, namespace, tolerations }) => pod(uid, { namespace, tolerations }));
  return benchAfter([nodeDelta(1, { pods: facts })], pods);
};

/** Returns a bench with this number of due pods, under these rules. */
export const duePods = async (count: number, ruling = rules): Promise<EvictBench> =>
  Object.assign(await due(...podsNamed(count)), { ruling });

/** Has this happen before each call of a method. The number counts the calls, from 1. */
export function beforeCalls<Target extends object>(
  target: Target,
  method: keyof Target & string,
  happens: (count: number) => unknown,
): void {
  const real = target[method] as (...args: unknown[]) => unknown;
  let count = 0;
  const watched = async (...args: unknown[]) => {
    count += 1;
    await happens(count);
    return real.apply(target, args);
  };
  Object.assign(target, { [method]: watched });
}

/** One pass: the records, the cluster, its rules and answers, and what the pass must do. */
export interface Case extends Partial<Awaited<ReturnType<EvictBench['seen']>>> {
  /** The due pods, by default one. */
  readonly pods?: readonly LivePod[];
  readonly rules?: Rules;
  /** What changes after the pods were scheduled, and how the API server answers. */
  readonly given?: (bench: EvictBench) => unknown;
}

/** Declares a test for each case, by its title. A case without an expectation fails. */
export function passes(cases: Readonly<Record<string, Case>>): void {
  for (const [title, { pods = podsNamed(1), rules: ruling, given, ...expected }] of Object.entries(cases))
    test(title, async () => {
      const bench = Object.assign(await due(...pods), ruling && { ruling });
      await given?.(bench);
      await bench.pass();
      const seen = Object.entries(await bench.seen()).filter(([name]) => name in expected);
      assert.notEqual(seen.length, 0);
      assert.deepEqual(Object.fromEntries(seen), expected);
    });
}

/** Returns the rules with these fields of the policy. */
export const ruled = (policy: Partial<Policy>, more: Partial<Rules> = {}): Rules => ({
  ...rules,
  ...more,
  policy: { ...rules.policy, ...policy },
});

export const STOP = { scope: 'fleet', actor: 'anna', at: at(0), reason: 'an incident' } as const;
export const stopped: Rules = { ...rules, stops: [STOP] };

/** Returns the rules with a hold of the node until this second. */
export const heldUntil = (second: number, governing = rules): Rules => {
  const hold = { id: 'h1', target: { kind: 'node', node: ref.node }, until: at(second) } as const;
  return { ...governing, holds: [{ ...hold, actor: 'anna', at: at(0), reason: 'an incident' }] };
};

export const podsNamed = (count: number): readonly LivePod[] =>
  Array.from({ length: count }, (_, index) => livePod(`u${index + 1}`));

export const serverError = (status: number, retryAfterSeconds?: number) =>
  new ApiError(`the server answered ${status}`, status, '', retryAfterSeconds);
