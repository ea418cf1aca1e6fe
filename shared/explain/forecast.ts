import { defined } from '#shared/defined.ts';
import { evaluate, type NodeObservation, type SeenPod } from '#shared/eviction/evaluate.ts';
import type { EvictionGate } from '#shared/eviction/eviction-gate.ts';
import type { Delta, NodeFacts, SeenTaint } from '#shared/eviction/facts.ts';
import { nextExpiry } from '#shared/eviction/gate.ts';
import { type NodeName, podUid } from '#shared/eviction/identity.ts';
import type { NodeLife } from '#shared/eviction/node-life.ts';
import { mergeNodeState } from '#shared/eviction/node-state.ts';
import { plan } from '#shared/eviction/plan.ts';
import type { Method, Rules } from '#shared/eviction/policy.ts';
import type { Cause } from '#shared/eviction/records.ts';
import {
  drainsOnRelease,
  type EvictionRecord,
  isTombstone,
  type NodeState,
  type Partition,
  type TimedTaint,
} from '#shared/eviction/records.ts';
import { momentOf, nextTryOf } from '#shared/eviction/retry.ts';
import { isHeldText } from '#shared/eviction/skew.ts';
import type { LiveTaint } from '#shared/taints/taint.ts';
import { evictingTaints } from '#shared/taints/virtual.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import { type Budget, budgetsOf, refuses } from './budgets.ts';

export interface ForecastPod extends SeenPod {
  readonly namespace: string;
  readonly name: string;
  /** `undefined` until bound. */
  readonly node: NodeName | undefined;
  readonly owner?: { readonly kind: string; readonly name: string };
  readonly podSince: EpochMs;
  /** With `terminating`: when the grace period ends, and which finalizers must be removed first. */
  readonly leaving?: { readonly gracePeriodEndedAt: EpochMs; readonly finalizers: readonly string[] };
  /** An annotation marks the pod as being moved off its node. Absent: no. */
  readonly moving?: true;
}

export interface NodeCase {
  readonly now: EpochMs;
  readonly partition: Partition;
  readonly rules: Rules;
  /** The node as the API server shows it. `taints`: `undefined` if the node does not exist. */
  readonly live: Pick<NodeObservation, 'taints' | 'taintsStamp' | 'zone' | 'life'> & {
    /** Why the Lease could not be read, if policy needs it. */
    readonly lifeUnknown?: string;
    /** Without the service: the latest time of taints without their own. Absent: an unstored countdown starts now. */
    readonly foundAt?: EpochMs;
  };
  /** Budgets in the namespace of the pods; absent: not known. */
  readonly budgets?: readonly Budget[];
}

interface Due {
  /** The deadline, or the time at which the pod was first observed, if that is later. */
  readonly dueAt: EpochMs;
  readonly causes: readonly Cause[];
}

/** The outcome for an existing pod if nothing changes. */
export type Forecast =
  | (Due & {
      readonly kind: 'evict';
      /** The earliest time of the eviction: now if the pod is due and has no gate. */
      readonly at: EpochMs;
      readonly by: Method['kind'];
      /** Gates that hold the pod from its deadline until `at`, one after the other. */
      readonly heldBy: readonly EvictionGate[];
      /** The limit under which the pod waits, also after `at`: other pods may be before it. */
      readonly pacedBy?: 'evictionRate' | 'releaseRate' | 'maxEvictionsPerWorkload';
      /** The eviction failed, and is retried at `at`. `isHold`: nothing failed; clocks differ. */
      readonly retrying?: {
        readonly error: string;
        readonly attempts: number;
        readonly isHold?: true;
        readonly unanswered?: true;
      };
      /** Disruption budgets that block the eviction until `at`. */
      readonly blockedBy: readonly string[];
      /** The last answer of a webhook, an admission policy, or an unreadable budget. It blocks the pod until `at` at most. */
      readonly rejected?: string;
    })
  /**
   * No known event ends the hold of the due pod. `before`: earlier gates, one after the other. `blockedBy`: in observe
   * mode, budgets that would block the eviction.
   */
  | (Due & {
      readonly kind: 'held';
      readonly by: EvictionGate;
      readonly before: readonly EvictionGate[];
      readonly blockedBy?: readonly string[];
    })
  /** Disruption budgets, or the last answer (`rejected`), block the pod, and policy never deletes such pods. */
  | (Due & { readonly kind: 'blocked'; readonly by: readonly string[]; readonly rejected?: string })
  | (Due & { readonly kind: 'failed'; readonly at: EpochMs; readonly error: string })
  | {
      readonly kind: 'keep';
      /** `bound-later`: the node is gone, and its last taints do not apply to pods that were bound later. */
      readonly cause: 'unbound' | 'untainted' | 'tolerated' | 'bound-later';
    }
  | {
      readonly kind: 'terminating';
      /** The actor that deleted the pod; `eviction-api`: any caller of that API. */
      readonly by: 'taintward' | 'taint-manager' | 'eviction-api' | 'other';
      readonly gracePeriodEndedAt?: EpochMs;
      readonly finalizers: readonly string[];
    };

/** Newer than any version of a relay. */
const NEWEST = { epoch: Number.MAX_SAFE_INTEGER, sequence: 0 };
/** The expiry of a Lease that is renewed. */
const NEVER = Number.POSITIVE_INFINITY;
/** Maximum number of rules that end one after the other: a cluster has at most a hundred holds. */
const MAX_STEPS = 1_000;

/** The state of a node after the processing of everything that the API server shows. */
export interface NodeForecast {
  readonly taints: readonly TimedTaint[];
  readonly deletedAt?: EpochMs;
  forecastOf(pod: ForecastPod): Forecast;
}

/**
 * Forecasts a node's pods if nothing changes: `plan` takes the API server's view, as if a relay had just sent it; then
 * `evaluate` decides at each time of processing, until the pod is evicted or no time is left.
 */
export function forecastPod(question: NodeCase): NodeForecast {
  const { now, partition, rules, live } = question;
  const facts = factsNow(question);
  const node = mergeNodeState(partition.node, { ...facts, kind: 'pod-gone', uid: podUid('') }, now);
  const knownLife = live.life ?? lifeIn(partition, now);
  // A live node renews its Lease, so the Lease does not expire if nothing changes.
  const life = knownLife?.kind === 'alive' ? { ...knownLife, until: NEVER } : knownLife;
  const verdictAt = (at: EpochMs) => evaluate(node, { ...live, life, node: partition.ref.node, at }, rules);
  const forecastOf = (pod: ForecastPod): Forecast => {
    if (pod.terminating) return leaving(pod);
    if (pod.node === undefined) return { kind: 'keep', cause: 'unbound' };
    const { uid, namespace, name, owner, podSince, tolerations } = pod;
    const podFacts = { uid, namespace, name, podSince, tolerations, ...defined({ owner }) };
    const delta: Delta = { ...facts, kind: 'pod', pod: podFacts };
    const [decision] = plan(partition, delta, rules, { now }).decisions;
    if (decision && 'record' in decision)
      return follow(decision.record, pod, node, { question, knownLife, verdictAt });
    const record = partition.scheduled.get(uid);
    if (!decision && record?.gaveUpAt !== undefined) return gaveUp(record, record.gaveUpAt);
    const end = partition.ended.get(uid);
    // The pod was deleted after the API server's response.
    if (end && isTombstone(end)) return leaving({ ...pod, disrupted: end.outcome === 'evicted' });
    return staying(node, pod);
  };
  const { taints, deletedAt } = node;
  return { taints, ...defined({ deletedAt }), forecastOf };
}

function lifeIn({ scheduled }: Partition, now: EpochMs): NodeLife | undefined {
  for (const { held } of scheduled.values()) {
    if (held?.by.kind !== 'node-alive' || held.by.until <= now) continue;
    return { kind: 'alive', renewedAt: held.by.renewedAt, until: held.by.until };
  }
  return undefined;
}

/** The API server's view of a node, as a relay would send it. */
function factsNow({ now, partition, rules, live }: NodeCase): NodeFacts {
  const facts = { ref: partition.ref, version: NEWEST, observedAt: now };
  if (live.taints === undefined) {
    const { taints = [], deletedAt = now } = partition.node ?? {};
    const last = taints.map(({ since, ...taint }): SeenTaint => ({ ...taint, seenAt: since }));
    return { ...facts, taints: last, deletedAt };
  }
  const { foundAt } = live;
  const seenAt = ({ timeAdded }: LiveTaint) =>
    foundAt === undefined ? now : Math.min(timeAdded ?? foundAt, foundAt);
  const taints = evictingTaints(live.taints, rules.policy.treatAsNoExecute).map(
    (taint): SeenTaint => ({ ...taint, known: 'preexisting', seenAt: seenAt(taint) }),
  );
  return { ...facts, taints, ...defined({ taintsStamp: live.taintsStamp }) };
}

interface Course {
  readonly question: NodeCase;
  readonly knownLife: NodeLife | undefined;
  verdictAt(at: EpochMs): ReturnType<typeof evaluate>;
}

/** Follows a scheduled pod: decides it at one time after the other. */
function follow(
  scheduled: EvictionRecord,
  pod: ForecastPod,
  node: NodeState,
  { question, knownLife, verdictAt }: Course,
): Forecast {
  const { now, rules, budgets } = question;
  const heldBy: EvictionGate[] = [];
  let blockedBy: readonly string[] = [];
  let rejected: Pick<Extract<Forecast, { kind: 'blocked' }>, 'rejected'> = {};
  // A record with `notBefore` was held until now, and is about to be released.
  let drained = drainsOnRelease(scheduled) || scheduled.notBefore !== undefined;
  let record = scheduled;
  // An operator's release wakes the pod immediately. A pod whose hold ended by itself waits like other pods.
  const isWoken = record.held !== undefined && (record.held.until ?? Number.POSITIVE_INFINITY) > now;
  let at = Math.max(now, isWoken ? now : (momentOf(record, node) ?? now));
  for (let steps = 0; steps < MAX_STEPS; steps++) {
    const { dueAt, causes } = record;
    const verdict = verdictAt(at)(record, pod);
    switch (verdict.kind) {
      case 'evict': {
        const asks = verdict.by === 'evict' ? budgetsOf(budgets ?? [], pod.labels ?? {}) : [];
        // The answer of known budgets can be computed. Any other answer is known only from the last try.
        const last = verdict.by === 'evict' && (!budgets || record.blocked?.by) ? record.blocked : undefined;
        if (!refuses(asks) && !last) {
          const { evictionRate, maxEvictionsPerWorkload } = verdict.unlimited ? {} : rules.policy;
          const own = maxEvictionsPerWorkload && 'maxEvictionsPerWorkload';
          const pacedBy = evictionRate !== undefined ? 'evictionRate' : drained ? 'releaseRate' : own;
          const due = { dueAt, causes, heldBy, blockedBy, ...rejected, ...retrying(record, node, now) };
          return { kind: 'evict', at, by: verdict.by, ...due, ...(pacedBy ? { pacedBy } : {}) };
        }
        blockedBy = refuses(asks) ? asks.map(({ name }) => name) : [];
        rejected = last ? { rejected: last.reason } : {};
        const { method } = rules.policy;
        if (method.kind === 'delete' || method.onTimeout === 'fail')
          return { kind: 'blocked', dueAt, causes, by: blockedBy, ...rejected };
        const since = record.blocked?.since ?? at;
        const nextTryAt = Math.max(at + 1, since + method.timeoutMs);
        record = { ...record, blocked: { reason: '', ...record.blocked, since, nextTryAt } };
        at = nextTryAt;
        break;
      }
      case 'hold': {
        const { held } = verdict.record;
        if (!held) throw new Error('a verdict to hold says by what');
        const ends = [held.until, nextExpiry(rules, at)].filter(
          (end) => end !== undefined && end > at && end < NEVER,
        );
        const gate = withoutNever(held.by, knownLife);
        if (ends.length === 0) {
          const asks = verdict.would?.by === 'evict' ? budgetsOf(budgets ?? [], pod.labels ?? {}) : [];
          const blocked = refuses(asks) ? { blockedBy: asks.map(({ name }) => name) } : {};
          return { kind: 'held', dueAt, causes, by: gate, before: heldBy, ...blocked };
        }
        if (!isSame(heldBy.at(-1), gate)) heldBy.push(gate);
        drained = held.until === undefined;
        record = verdict.record;
        at = Math.min(...ends.map(Number));
        break;
      }
      case 'reschedule':
        record = verdict.record;
        at = record.dueAt;
        break;
      case 'cancel':
        return staying(node, pod);
      case 'end':
        return leaving(pod);
      case 'behind':
        throw new Error('the node shows nothing that was not sent');
      case 'early':
      case 'refused':
        throw new Error('no other clock was asked');
      default:
        verdict satisfies never;
    }
  }
  throw new Error(`rules ended ${MAX_STEPS} times, and still something holds the pod`);
}

const staying = ({ taints, deletedAt = NEVER }: NodeState, { podSince }: ForecastPod): Forecast => ({
  kind: 'keep',
  cause: taints.length === 0 ? 'untainted' : podSince > deletedAt ? 'bound-later' : 'tolerated',
});

function leaving({ disrupted, evicted, deleted, leaving }: ForecastPod): Forecast {
  const { gracePeriodEndedAt, finalizers = [] } = leaving ?? {};
  const deleter = disrupted && !deleted ? 'taintward' : evicted ? 'eviction-api' : (deleted?.by ?? 'other');
  return { kind: 'terminating', by: deleter, ...defined({ gracePeriodEndedAt }), finalizers };
}

export function gaveUp({ dueAt, causes, failure }: EvictionRecord, at: EpochMs): Forecast {
  return { kind: 'failed', dueAt, causes, at, error: failure?.error ?? '' };
}

export function retrying(
  record: EvictionRecord,
  node: Pick<NodeState, 'retry' | 'outage'>,
  now: EpochMs,
): Pick<Extract<Forecast, { kind: 'evict' }>, 'retrying'> {
  const next = nextTryOf(record, node);
  if (record.dueAt > now || !next) return {};
  const { error, attempts, everything } = next;
  if (next === node.outage) return { retrying: { error, attempts, unanswered: true } };
  if (everything && isHeldText(error)) return { retrying: { error, attempts, isHold: true } };
  return { retrying: { error: record.failure?.error ?? error, attempts } };
}

/** Returns a gate without the end that never comes. The gate of a Lease ends when the Lease is read again. */
function withoutNever(gate: EvictionGate, knownLife: NodeLife | undefined): EvictionGate {
  if (!('until' in gate) || gate.until !== NEVER) return gate;
  if (gate.kind === 'node-alive')
    return knownLife?.kind === 'alive' ? { ...gate, until: knownLife.until } : gate;
  const { until: _never, ...endless } = gate;
  return endless;
}

const isSame = (one: EvictionGate | undefined, other: EvictionGate): boolean =>
  one?.kind === other.kind && (one.kind !== 'hold' || (other.kind === 'hold' && one.id === other.id));
