import { defined } from '#shared/defined.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import { afterBlocks } from './budget.ts';
import type { ClocksApart, EvictionDecision } from './evaluate.ts';
import { compareVersions, type Version } from './facts.ts';
import { isObserved, mayStillHold } from './gate.ts';
import type { PodUid } from './identity.ts';
import type { Lapse } from './node-life.ts';
import { changeOf } from './noted.ts';
import type { Rules } from './policy.ts';
import type { Turn } from './rate.ts';
import {
  type Block,
  type EvictionRecord,
  ending,
  type FinalRecord,
  isTainted,
  type NodeRetry,
  type NodeState,
  type Partition,
} from './records.ts';
import { afterFailures, type Failures, isEndedSince, ownMomentOf } from './retry.ts';

/** The outcome of a pass for one due pod. Each decision other than to evict the pod is an outcome. */
export type PodOutcome =
  | Exclude<EvictionDecision, { readonly kind: 'evict' } | ClocksApart>
  /** The pod was evicted `delayMs` after its deadline. `lease`: see {@link EvictionDecision}. */
  | { readonly kind: 'deleted'; readonly delayMs: number; readonly lease?: Lapse }
  /** The Eviction API blocks the eviction for now. */
  | { readonly kind: 'blocked'; readonly block: Block }
  | { readonly kind: 'waiting'; readonly turn: Turn }
  /** `failed`: this pod. `refused`: the cluster accepts no requests for now, and the pod may not have been tried. */
  | {
      readonly kind: 'failed' | 'refused';
      readonly error: string;
      readonly retryAfterSeconds: number;
      readonly unanswered?: boolean;
      /** Nothing failed: see {@link ClocksApart}. */
      readonly isHold?: true;
    }
  /** A fault in Taintward. */
  | { readonly kind: 'fault'; readonly error: unknown };

/** A pod that was due, with its record at that time and the outcome. */
export interface Settled {
  readonly record: EvictionRecord;
  readonly outcome: PodOutcome;
}

/** A completed pass over a node. `before`: the node's partition at the start of the pass. */
export interface DonePass {
  readonly before: Partition;
  readonly settled: readonly Settled[];
  /** The cluster answers no calls at all. */
  readonly outOfReach: boolean;
  readonly begunAt: EpochMs;
}

/** Reports whether a recorded pass proves that evictions work: nothing failed. Pods may be held. */
export const isComplete = ({ settled, outOfReach }: DonePass): boolean =>
  !outOfReach && !settled.some(({ outcome: { kind } }) => INCOMPLETE.includes(kind));

const INCOMPLETE: readonly PodOutcome['kind'][] = ['failed', 'refused', 'fault', 'behind'];

export const endsOf = (settled: readonly Settled[]): readonly FinalRecord[] =>
  settled.flatMap(({ record, outcome }) => {
    if (outcome.kind === 'deleted') return ending(record, { outcome: 'evicted', delayMs: outcome.delayMs });
    if (outcome.kind !== 'end') return [];
    const { outcome: how, deleted, by: gate } = outcome;
    return ending(record, { outcome: how, ...defined({ deleted, by: gate }) });
  });

/** When postponed pods are processed again. Pods that one rule holds are processed together when it ends. */
export function momentsOf({ before, settled }: DonePass): readonly EpochMs[] {
  const armed = new Set([...before.scheduled.values()].map(({ held }) => held?.until));
  const moments = settled.flatMap(({ record, outcome }) => {
    if (outcome.kind === 'reschedule') return outcome.record.dueAt;
    if (outcome.kind === 'early') return outcome.againAt;
    if (outcome.kind === 'waiting') return ownMomentOf({ ...record, ...outcome.turn });
    const until = outcome.kind === 'hold' ? outcome.record.held.until : undefined;
    return until === undefined || armed.has(until) ? [] : until;
  });
  return [...new Set(moments)];
}

/** Outcomes that need no write under the lock. Most passes only end records. */
const UNLOCKED: readonly PodOutcome['kind'][] = ['deleted', 'end', 'behind', 'early', 'fault'];

export const mustCommit = ({ before, settled }: DonePass, now: EpochMs): boolean =>
  (before.node?.retry?.nextTryAt ?? Infinity) <= now ||
  before.node?.outage !== undefined ||
  settled.some(({ outcome }) => !UNLOCKED.includes(outcome.kind));

/**
 * Decides a pass's write on its node (`change`), and the consequences. `found`: the partition under the lock; changes
 * that others made meanwhile are not overwritten. `random`: 0 to 1.
 */
export function recordOf(
  pass: DonePass,
  found: Partition,
  rules: Rules,
  { now, random }: { readonly now: EpochMs; readonly random: number },
) {
  const { node, scheduled } = found;
  const { giveUpAfterMs, method } = rules.policy;
  const { left, canceled, schedule, blocks, failures, moved } = remaining(pass, found, rules, now);
  const progressed = endsOf(pass.settled).length > 0;
  const waiting = afterBlocks({ node, scheduled: left }, blocks, method, { now, progressed });
  for (const uid of blocks.keys()) if (!waiting.failed.has(uid)) left.delete(uid);
  const pods = new Map([...failures.pods, ...waiting.failed]);
  const { begunAt } = pass;
  const given = { now, random, giveUpAfterMs, begunAt };
  const after = node && afterFailures(node, left, { ...failures, pods }, given);
  const { retry = retryAtTurn(node?.retry, schedule, { now, progressed }), outage } = after?.node ?? {};
  schedule.push(...waiting.changed, ...(after?.changed ?? []));
  const [failure = failures.everything] = pods.values();
  const result = {
    /** Changes of records, each record as it is to be stored. */
    changed: schedule.flatMap((record) => {
      const note = changeOf(scheduled.get(record.uid), record);
      return note && note.event !== 'released' ? { record, note } : [];
    }),
    /** The policy by which the changes are reported: in observe mode, the evictions will not happen. */
    policy: rules.policy,
    canceled,
    gaveUp: after?.gaveUp ?? [],
    /** When the Eviction API is asked again, if this pass set it. */
    askAgainAt: waiting.node?.nextTryAt,
    /**
     * The next tries that this pass set. If several messages fail at the same time, only one continues; otherwise,
     * their number would not shrink while failures last.
     */
    retries: [
      ...(after?.node.retry && retry?.nextTryAt !== node?.retry?.nextTryAt ? [after.node.retry] : []),
      ...(outage && outage.nextTryAt !== node?.outage?.nextTryAt ? [outage] : []),
    ],
    /** A pod has newer facts by now, or the cluster has answered, so an outcome no longer holds. */
    moved: moved || (outage !== undefined && isEndedSince(outage, begunAt)),
    /** The failure of a pass whose node has no stored state, so that the next try can't be stored. */
    unnoted: node || left.size === 0 ? undefined : failure,
  };
  const blocked = waiting.node ? { blocked: waiting.node } : {};
  const isNew = after && (waiting.node || retry !== node.retry || outage !== node.outage);
  const onNode: { readonly node?: NodeState } = isNew
    ? { node: { ...after.node, ...blocked, ...defined({ retry }) } }
    : {};
  if (schedule.length + canceled.length === 0 && !onNode.node) return { result };
  return { result, change: { ...onNode, schedule, end: canceled, live: isTainted(node) } };
}

export type Recorded = ReturnType<typeof recordOf>['result'];

/**
 * Returns the retry of pods that were not tried, because they wait for a turn: their next failure continues the back-off.
 */
function retryAtTurn(
  retry: NodeRetry | undefined,
  schedule: readonly EvictionRecord[],
  { now, progressed }: { readonly now: EpochMs; readonly progressed: boolean },
): NodeRetry | undefined {
  const turns = schedule
    .filter(({ failure }) => failure || (retry?.everything && !progressed))
    .flatMap(({ turnAt = 0 }) => (turnAt > now ? turnAt : []));
  return retry && turns.length > 0 ? { ...retry, nextTryAt: Math.min(...turns) } : undefined;
}

/** The writes for outcomes that still hold. `left`: scheduled records that these do not settle. */
function remaining({ before, settled, outOfReach }: DonePass, found: Partition, rules: Rules, now: EpochMs) {
  const left = new Map(found.scheduled);
  const canceled: FinalRecord[] = [];
  const schedule: EvictionRecord[] = [];
  const blocks = new Map<PodUid, Block>();
  const pods = new Map<PodUid, string>();
  let everything: string | undefined;
  let retryAfterSeconds = 0;
  let isHold = false;
  let unanswered = false;
  let moved = false;
  const stands = (record: EvictionRecord): boolean => {
    const untouched = isUntouched(before, found, record);
    if (untouched) left.delete(record.uid);
    else moved = true;
    return untouched;
  };
  for (const { record, outcome } of settled) {
    const { uid } = record;
    switch (outcome.kind) {
      case 'cancel':
        if (!stands(record)) break;
        canceled.push(ending(record, { outcome: 'canceled', cancelReason: outcome.because }));
        break;
      case 'reschedule':
        if (stands(outcome.record)) schedule.push(outcome.record);
        break;
      case 'hold':
        // If the gate has opened by now, the wake for held pods may have come before this hold was stored.
        if (!mayStillHold(outcome.record.held.by, rules, now)) moved = true;
        // Another pass reported the pod as would-evict, which is reported once.
        else if (isObserved(rules) && found.scheduled.get(uid)?.held?.by.kind === 'observe') left.delete(uid);
        else if (stands(outcome.record)) schedule.push(outcome.record);
        break;
      case 'waiting': {
        const waits = left.get(uid);
        // A record rescheduled meanwhile asks again at its new deadline. A concurrent pass may have given it a turn:
        // every further one would be later.
        if (waits && Math.max(waits.dueAt, waits.turnAt ?? 0) <= now)
          schedule.push({ ...waits, ...outcome.turn });
        left.delete(uid);
        break;
      }
      case 'blocked':
        blocks.set(uid, outcome.block);
        break;
      case 'failed':
      case 'refused':
        if (outcome.kind === 'failed') pods.set(uid, outcome.error);
        else everything ??= outcome.error;
        retryAfterSeconds = Math.max(retryAfterSeconds, outcome.retryAfterSeconds);
        isHold ||= outcome.isHold === true;
        unanswered ||= outcome.unanswered === true;
        break;
      case 'deleted':
      case 'end':
        if (isUntouched(before, found, record)) left.delete(uid);
        break;
      case 'behind':
      case 'early':
      case 'fault':
        break;
      default:
        outcome satisfies never;
    }
  }
  const whole = everything === undefined ? {} : { everything, unanswered, outOfReach };
  const failures: Failures = { ...whole, pods, retryAfterSeconds, isHold };
  return { left, canceled, schedule, blocks, failures, moved };
}

/** Reports whether a pod has neither newer facts nor a moved deadline since its partition was read. */
function isUntouched(before: Partition, found: Partition, record: EvictionRecord): boolean {
  const stored = found.scheduled.get(record.uid);
  return (
    stored !== undefined &&
    same(stored.version, record.version) &&
    [before.scheduled.get(record.uid)?.dueAt, record.dueAt].includes(stored.dueAt) &&
    same(found.node?.version, before.node?.version) &&
    same(found.node?.podsVersion, before.node?.podsVersion)
  );
}

const same = (a: Version | undefined, b: Version | undefined): boolean =>
  a && b ? compareVersions(a, b) === 0 : a === b;
