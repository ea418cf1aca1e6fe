import { evaluate, type NodeObservation, type SeenPod } from '#shared/eviction/evaluate.ts';
import type { EvictionGate } from '#shared/eviction/eviction-gate.ts';
import type { Delta, NodeFacts, SeenTaint } from '#shared/eviction/facts.ts';
import { nextExpiry } from '#shared/eviction/gate.ts';
import { type NodeName, podUid } from '#shared/eviction/identity.ts';
import type { NodeLife } from '#shared/eviction/node-life.ts';
import { mergeNodeState } from '#shared/eviction/node-state.ts';
import { plan } from '#shared/eviction/plan.ts';
import type { Method, Rules } from '#shared/eviction/policy.ts';
import {
  drainsOnRelease,
  type EvictionRecord,
  isTombstone,
  type NodeState,
  type Partition,
  type TimedTaint,
} from '#shared/eviction/records.ts';
import { momentOf } from '#shared/eviction/retry.ts';
import { isHeldText } from '#shared/eviction/skew.ts';
import type { LiveTaint } from '#shared/taints/taint.ts';
import { evictingTaints } from '#shared/taints/virtual.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import { type Budget, budgetsOf, refuses } from './budgets.ts';
import { type Cause, causesOf } from './cause.ts';

/** A pod as the API server shows it. */
export interface AskedPod extends SeenPod {
  readonly namespace: string;
  readonly name: string;
  /** `undefined` until bound. */
  readonly node: NodeName | undefined;
  readonly owner?: { readonly kind: string; readonly name: string };
  /** When it was bound to its node. */
  readonly podSince: EpochMs;
  /** With `terminating`: when its grace period is over, and what has to be done before it may go. */
  readonly leaving?: { readonly overAt: EpochMs; readonly finalizers: readonly string[] };
  /** Somebody says that it is being moved off its node. Absent: no. */
  readonly moving?: true;
}

/** A node, and all by which its pods are decided, at one moment. */
export interface NodeCase {
  readonly now: EpochMs;
  /** What is stored of it. */
  readonly partition: Partition;
  readonly rules: Rules;
  /** As the API server shows it; `taints` are `undefined` where there is no such node. */
  readonly live: Pick<NodeObservation, 'taints' | 'taintsStamp' | 'zone' | 'life'> & {
    /** Why its Lease could not be read, where that matters. */
    readonly lifeUnknown?: string;
  };
  /**
   * Where no service counts: since when the taints are there at the latest, but for those that say it themselves. Absent: one of
   * which nothing is stored counts from now on.
   */
  readonly foundAt?: EpochMs;
  /** In the namespace of the pods; absent: not known. */
  readonly budgets?: readonly Budget[];
}

/** What a pod is due by, and when. */
interface Due {
  /** Its deadline, or when it was heard of, if that came later. */
  readonly dueAt: EpochMs;
  readonly causes: readonly Cause[];
}

/** What becomes of a pod that is there, as long as nothing changes. */
export type Forecast =
  | (Due & {
      readonly kind: 'evict';
      /** Not before; now, where it is due and nothing keeps it. */
      readonly at: EpochMs;
      readonly by: Method['kind'];
      /** It is due before that, and these keep it for so long, one after the other. */
      readonly heldBy: readonly EvictionGate[];
      /** It waits for its turn among others: under the cluster's rate, or because all that was held is let go in turn. */
      readonly pacedBy?: 'evictionRate' | 'releaseRate';
      /** It failed, and is tried again at `at`. `isHold`: nothing failed, it is held because clocks differ. */
      readonly retrying?: { readonly error: string; readonly attempts: number; readonly isHold?: true };
      /** Its disruption budgets keep it until `at`. */
      readonly blockedBy: readonly string[];
      /** A webhook or an admission policy refused it, in these words, and keeps it until `at` unless it relents. */
      readonly rejected?: string;
    })
  /** It is due, or will be, and nothing that is known of lets it go; `before`: what keeps it until then, one after the other. */
  | (Due & { readonly kind: 'held'; readonly by: EvictionGate; readonly before: readonly EvictionGate[] })
  /** Its disruption budgets, or what `refused` it, keep it, and policy says never to go against them. */
  | (Due & { readonly kind: 'blocked'; readonly by: readonly string[]; readonly rejected?: string })
  | (Due & { readonly kind: 'failed'; readonly at: EpochMs; readonly error: string })
  | {
      readonly kind: 'keep';
      /** `bound-later`: its node is gone, and the taints that it had concern no pod that came later. */
      readonly cause: 'unbound' | 'untainted' | 'tolerated' | 'bound-later';
    }
  /** It is terminating. */
  | {
      readonly kind: 'terminating';
      /** Who deleted it; `eviction-api`: whoever asked that. */
      readonly by: 'taintward' | 'taint-manager' | 'eviction-api' | 'other';
      readonly gracePeriodEndedAt?: EpochMs;
      readonly finalizers: readonly string[];
    };

/** Newer than any version that a relay ever told. */
const NEWEST = { epoch: Number.MAX_SAFE_INTEGER, sequence: 0 };
/** Until a Lease expires that is renewed. */
const NEVER = Number.POSITIVE_INFINITY;
/** Rules that end one after the other: a cluster has a hundred holds at most. */
const MAX_STEPS = 1_000;

/** What is known of a node, once all that it shows has been told. */
export interface NodeForecast {
  /** The taints that evict, each with the start of its countdown. */
  readonly taints: readonly TimedTaint[];
  /** When the node went; absent: it is there. */
  readonly deletedAt?: EpochMs;
  fateOf(pod: AskedPod): Forecast;
}

/**
 * Tells what becomes of the pods of a node as long as nothing changes: first `plan` hears what the API server shows, as if a
 * relay told it just now, and then `judge` is asked at each moment at which something is to be looked at, until one of them
 * lets the pod go or none is left.
 */
export function forecastPod(asked: NodeCase): NodeForecast {
  const { now, partition, rules, live } = asked;
  const facts = toldNow(asked);
  const node = mergeNodeState(partition.node, { ...facts, kind: 'pod-gone', uid: podUid('') }, now);
  const said = live.life ?? lifeIn(partition, now);
  // A node that is alive renews its Lease: as long as nothing changes, that does not expire.
  const life = said?.kind === 'alive' ? { ...said, until: NEVER } : said;
  const verdictAt = (at: EpochMs) => evaluate(node, { ...live, life, node: partition.ref.node, at }, rules);
  const fateOf = (pod: AskedPod): Forecast => {
    if (pod.terminating) return leaving(pod);
    if (pod.node === undefined) return { kind: 'keep', cause: 'unbound' };
    const { uid, namespace, name, owner, podSince, tolerations } = pod;
    const told = { uid, namespace, name, podSince, tolerations, ...(owner ? { owner } : {}) };
    const delta: Delta = { ...facts, kind: 'pod', pod: told };
    const [decision] = plan(partition, delta, rules, { now }).decisions;
    if (decision && 'record' in decision)
      return follow(decision.record, pod, node, { asked, said, verdictAt });
    const record = partition.scheduled.get(uid);
    if (!decision && record?.gaveUpAt !== undefined) return gaveUp(record, record.gaveUpAt);
    const end = partition.ended.get(uid);
    // It was deleted after the API server showed it.
    if (end && isTombstone(end)) return leaving({ ...pod, disrupted: end.outcome === 'done' });
    return staying(node, pod);
  };
  const { taints, deletedAt } = node;
  return { taints, ...(deletedAt === undefined ? {} : { deletedAt }), fateOf };
}

/** What a node's Lease said when one of its pods was held for it. */
function lifeIn({ scheduled }: Partition, now: EpochMs): NodeLife | undefined {
  for (const { held } of scheduled.values()) {
    if (held?.by.kind !== 'node-alive' || held.by.until <= now) continue;
    return { kind: 'alive', renewedAt: held.by.renewedAt, until: held.by.until };
  }
  return undefined;
}

/** What the API server shows of a node, as a relay would tell it. */
function toldNow({ now, partition, rules, live, foundAt }: NodeCase): NodeFacts {
  const facts = { ref: partition.ref, version: NEWEST, observedAt: now };
  if (live.taints === undefined) {
    const { taints = [], deletedAt = now } = partition.node ?? {};
    const last = taints.map(({ since, ...taint }): SeenTaint => ({ ...taint, seenAt: since }));
    return { ...facts, taints: last, deletedAt };
  }
  const seenAt = ({ timeAdded }: LiveTaint) =>
    foundAt === undefined ? now : Math.min(timeAdded ?? foundAt, foundAt);
  const taints = evictingTaints(live.taints, rules.policy.virtualKeys).map(
    (taint): SeenTaint => ({ ...taint, known: 'found', seenAt: seenAt(taint) }),
  );
  return { ...facts, taints, ...(live.taintsStamp === undefined ? {} : { taintsStamp: live.taintsStamp }) };
}

/** By what a pod that is scheduled is followed. */
interface Course {
  readonly asked: NodeCase;
  /** What the node's Lease says. */
  readonly said: NodeLife | undefined;
  /** The judge of the node, as it is now, at a moment to come. */
  verdictAt(at: EpochMs): ReturnType<typeof evaluate>;
}

/** Asks the judge of a pod at one moment after the other. */
function follow(
  scheduled: EvictionRecord,
  pod: AskedPod,
  node: NodeState,
  { asked, said, verdictAt }: Course,
): Forecast {
  const { now, rules, budgets = [] } = asked;
  const heldBy: EvictionGate[] = [];
  let blockedBy: readonly string[] = [];
  let rejected: Pick<Extract<Forecast, { kind: 'blocked' }>, 'rejected'> = {};
  // What was held, and is not any more, is about to be woken.
  let drained = drainsOnRelease(scheduled) || scheduled.notBefore !== undefined;
  let record = scheduled;
  // Whoever releases it wakes it at once; when a hold is over by itself, it waits as others do.
  const isWoken = record.held !== undefined && (record.held.until ?? Number.POSITIVE_INFINITY) > now;
  let at = Math.max(now, isWoken ? now : (momentOf(record, node) ?? now));
  for (let steps = 0; steps < MAX_STEPS; steps++) {
    const { fireAt: dueAt, reasons } = record;
    const verdict = verdictAt(at)(record, pod);
    switch (verdict.kind) {
      case 'evict': {
        const asks = verdict.by === 'evict' ? budgetsOf(budgets, pod.labels ?? {}) : [];
        // What budgets say can be computed; what a webhook says, only its last answer tells.
        const isRefused = verdict.by === 'evict' && record.blocked?.by === 'admission';
        if (!refuses(asks) && !isRefused) {
          const ruled = rules.policy.rate !== undefined && !verdict.unlimited;
          const pacedBy = ruled ? 'evictionRate' : drained ? 'releaseRate' : undefined;
          return {
            ...{
              kind: 'evict',
              at,
              by: verdict.by,
              dueAt,
              causes: causesOf(reasons),
              heldBy,
              blockedBy,
              ...rejected,
            },
            ...(pacedBy ? { pacedBy } : {}),
            ...retrying(record, node, now),
          };
        }
        blockedBy = refuses(asks) ? asks.map(({ name }) => name) : [];
        rejected = isRefused && record.blocked ? { rejected: record.blocked.reason } : {};
        const { method } = rules.policy;
        if (method.kind === 'delete' || method.afterDeadline === 'never')
          return { kind: 'blocked', dueAt, causes: causesOf(reasons), by: blockedBy, ...rejected };
        const since = record.blocked?.since ?? at;
        const nextTryAt = Math.max(at + 1, since + method.deadlineMs);
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
        const by = asTold(held.by, said);
        if (ends.length === 0) return { kind: 'held', dueAt, causes: causesOf(reasons), by, before: heldBy };
        if (!isSame(heldBy.at(-1), by)) heldBy.push(by);
        drained = held.until === undefined;
        record = verdict.record;
        at = Math.min(...ends.map(Number));
        break;
      }
      case 'reschedule':
        record = verdict.record;
        at = record.fireAt;
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

function staying({ taints, deletedAt }: NodeState, { podSince }: AskedPod): Forecast {
  if (taints.length === 0) return { kind: 'keep', cause: 'untainted' };
  const isLater = deletedAt !== undefined && podSince > deletedAt;
  return { kind: 'keep', cause: isLater ? 'bound-later' : 'tolerated' };
}

function leaving({ disrupted, evicted, deleted, leaving }: AskedPod): Forecast {
  const { overAt, finalizers = [] } = leaving ?? {};
  const other = deleted?.by ?? 'other';
  const by = disrupted && !deleted ? 'taintward' : evicted ? 'eviction-api' : other;
  return {
    kind: 'terminating',
    by,
    ...(overAt === undefined ? {} : { gracePeriodEndedAt: overAt }),
    finalizers,
  };
}

/** `at`: since when it is left alone. */
export function gaveUp({ fireAt: dueAt, reasons, failure }: EvictionRecord, at: EpochMs): Forecast {
  return { kind: 'failed', dueAt, causes: causesOf(reasons), at, error: failure?.error ?? '' };
}

/** That a record which is due by now failed, and waits for its next try. */
export function retrying(
  { fireAt, failure }: EvictionRecord,
  { retry }: Pick<NodeState, 'retry'>,
  now: EpochMs,
): Pick<Extract<Forecast, { kind: 'evict' }>, 'retrying'> {
  if (fireAt > now || !retry || !(retry.everything || failure)) return {};
  const { error, attempts, everything } = retry;
  if (everything && isHeldText(error)) return { retrying: { error, attempts, isHold: true } };
  return { retrying: { error: failure?.error ?? error, attempts } };
}

/** A brake without the moment that never comes; that of a Lease is the one at which it is read again. */
function asTold(by: EvictionGate, said: NodeLife | undefined): EvictionGate {
  if (!('until' in by) || by.until !== NEVER) return by;
  if (by.kind === 'node-alive') return said?.kind === 'alive' ? { ...by, until: said.until } : by;
  const { until: _never, ...gate } = by;
  return gate;
}

const isSame = (one: EvictionGate | undefined, other: EvictionGate): boolean =>
  one?.kind === other.kind && (one.kind !== 'hold' || (other.kind === 'hold' && one.id === other.id));
