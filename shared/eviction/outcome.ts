import type { EpochMs } from '#shared/time/epoch-ms.ts';
import { afterBlocks } from './budget.ts';
import type { ClocksApart, EvictionDecision } from './evaluate.ts';
import { compareVersions, type Version } from './facts.ts';
import { mayStillHold } from './gate.ts';
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
  type NodeState,
  type Partition,
} from './records.ts';
import { afterFailures, type Failures, ownMomentOf } from './retry.ts';

/** What a pass came to with one pod that was due. A verdict other than to evict it is one. */
export type PodOutcome =
  | Exclude<EvictionDecision, { readonly kind: 'evict' } | ClocksApart>
  /** Evicted, so long after it fell due. `lease`: see {@link Verdict}. */
  | { readonly kind: 'deleted'; readonly lateMs: number; readonly lease?: Lapse }
  /** The Eviction API refuses it for now. */
  | { readonly kind: 'blocked'; readonly block: Block }
  /** It waits for its turn. */
  | { readonly kind: 'waiting'; readonly turn: Turn }
  /** `failed`: it could not be evicted, by itself. `refused`, or not tried: the cluster lets nothing (more) be done for now. */
  | {
      readonly kind: 'failed' | 'refused';
      readonly error: string;
      readonly retryAfterSeconds: number;
      /** Nothing failed: see {@link ClocksApart}. */
      readonly isHold?: true;
    }
  /** A fault of ours. */
  | { readonly kind: 'fault'; readonly error: unknown };

/** A pod that was due, as its record was then, and what came of it. */
export interface Settled {
  readonly record: EvictionRecord;
  readonly outcome: PodOutcome;
}

/** A pass over a node, which stood as `before` says when it began. */
export interface DonePass {
  readonly before: Partition;
  /** In the order in which it came to that. */
  readonly settled: readonly Settled[];
  /** Whether the cluster answers no calls at all. */
  readonly outOfReach: boolean;
}

/** Whether a pass, once recorded, proves that evictions work: the cluster answered, and nothing failed. Pods may be held. */
export const isComplete = ({ settled, outOfReach }: DonePass): boolean =>
  !outOfReach && !settled.some(({ outcome: { kind } }) => INCOMPLETE.includes(kind));

const INCOMPLETE: readonly PodOutcome['kind'][] = ['failed', 'refused', 'fault', 'behind'];

/** How the records of pods end that are gone. */
export const endsOf = (settled: readonly Settled[]): readonly FinalRecord[] =>
  settled.flatMap(({ record, outcome }) => {
    if (outcome.kind === 'deleted') return ending(record, { outcome: 'done', lateMs: outcome.lateMs });
    if (outcome.kind !== 'end') return [];
    const { outcome: how, deleted } = outcome;
    return ending(record, { outcome: how, ...(deleted ? { deleted } : {}) });
  });

/** When pods are to be looked at again that are put off; pods that one rule keeps, together when it ends. */
export function momentsOf({ before, settled }: DonePass): readonly EpochMs[] {
  const armed = new Set([...before.scheduled.values()].map(({ held }) => held?.until));
  const moments = settled.flatMap(({ record, outcome }) => {
    if (outcome.kind === 'reschedule') return outcome.record.fireAt;
    if (outcome.kind === 'early') return outcome.againAt;
    if (outcome.kind === 'waiting') return ownMomentOf({ ...record, ...outcome.turn });
    const until = outcome.kind === 'hold' ? outcome.record.held.until : undefined;
    return until === undefined || armed.has(until) ? [] : until;
  });
  return [...new Set(moments)];
}

/** Of these nothing is to be written under the lock: most passes only end records. */
const UNLOCKED: readonly PodOutcome['kind'][] = ['deleted', 'end', 'behind', 'early', 'fault'];

/** Reports whether something is to be written under the lock. */
export const needsCommit = ({ before, settled }: DonePass, now: EpochMs): boolean =>
  (before.node?.retry?.nextTryAt ?? Infinity) <= now ||
  settled.some(({ outcome }) => !UNLOCKED.includes(outcome.kind));

/**
 * Decides what of a pass is to be written on its node as it is `found` under the lock (`change`, if anything is), and what follows
 * once that is. What changed meanwhile is not overwritten. `random`: 0 to 1.
 */
export function recordOf(
  pass: DonePass,
  found: Partition,
  rules: Rules,
  { now, random }: { readonly now: EpochMs; readonly random: number },
) {
  const { node, scheduled } = found;
  const { giveUpAfterMs, method } = rules.policy;
  const { left, cancelled, schedule, blocks, failures, moved } = standing(pass, found, rules, now);
  const progressed = endsOf(pass.settled).length > 0;
  const waiting = afterBlocks({ node, scheduled: left }, blocks, method, { now, progressed });
  for (const uid of blocks.keys()) if (!waiting.failed.has(uid)) left.delete(uid);
  const pods = new Map([...failures.pods, ...waiting.failed]);
  const after = node && afterFailures(node, left, { ...failures, pods }, { now, random, giveUpAfterMs });
  const retry = after?.node.retry;
  schedule.push(...waiting.changed, ...(after?.changed ?? []));
  const [failure = failures.everything] = pods.values();
  const result = {
    /** What became of records, each as it is to be stored. */
    told: schedule.flatMap((record) => {
      const note = changeOf(scheduled.get(record.uid), record);
      // Equivalent mutants (ConditionalExpression, StringLiteral): No pass frees a pod: the check is for the type.
      return note && note.what !== 'freed' ? { record, note } : [];
    }),
    /** The cluster is only observed: nothing will come of what was told. */
    observed: rules.policy.mode === 'observe',
    cancelled,
    gaveUp: after?.gaveUp ?? [],
    /** When the Eviction API is asked again, if this pass set it. */
    askAgainAt: waiting.node?.nextTryAt,
    /**
     * The next try, if this pass set it. One that another pass set meanwhile is armed by that one: of messages that fail
     * at the same time one goes on, or they would stay as many as they are for as long as it fails.
     */
    retry: retry?.nextTryAt === node?.retry?.nextTryAt ? undefined : retry,
    /** Something newer was told of a pod meanwhile, so that its outcome no longer holds. */
    moved,
    /** What failed although nothing is known of the node, so that there is nowhere to note when it is tried again. */
    unnoted: node || left.size === 0 ? undefined : failure,
  };
  const blocked = waiting.node ? { blocked: waiting.node } : {};
  const isNew = after && (waiting.node || retry !== node.retry);
  const onNode: { readonly node?: NodeState } = isNew ? { node: { ...after.node, ...blocked } } : {};
  if (schedule.length + cancelled.length === 0 && !onNode.node) return { result };
  return { result, change: { ...onNode, schedule, end: cancelled, live: isTainted(node) } };
}

/** What follows once a pass is recorded. */
export type Recorded = ReturnType<typeof recordOf>['result'];

/** What the outcomes of a pass that still hold ask for. `left`: what is scheduled and settled by none of them. */
function standing({ before, settled, outOfReach }: DonePass, found: Partition, rules: Rules, now: EpochMs) {
  const left = new Map(found.scheduled);
  const cancelled: FinalRecord[] = [];
  const schedule: EvictionRecord[] = [];
  const blocks = new Map<PodUid, Block>();
  const pods = new Map<PodUid, string>();
  let everything: string | undefined;
  let retryAfterSeconds = 0;
  let isHold = false;
  let moved = false;
  const stands = (record: EvictionRecord): boolean => {
    const is = isUntouched(before, found, record);
    if (is) left.delete(record.uid);
    else moved = true;
    return is;
  };
  for (const { record, outcome } of settled) {
    const { uid } = record;
    switch (outcome.kind) {
      case 'cancel':
        if (!stands(record)) break;
        cancelled.push(ending(record, { outcome: 'cancelled', cancelled: outcome.because }));
        break;
      case 'reschedule':
        if (stands(outcome.record)) schedule.push(outcome.record);
        break;
      case 'hold':
        // Who wakes what is held has done so already if nothing holds it by now.
        if (!mayStillHold(outcome.record.held.by, rules, now)) moved = true;
        else if (stands(outcome.record)) schedule.push(outcome.record);
        break;
      case 'waiting': {
        const waits = left.get(uid);
        // What fell due may have been moved meanwhile, and asks then.
        if (waits && waits.fireAt <= now) schedule.push({ ...waits, ...outcome.turn });
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
        break;
      case 'deleted':
      case 'end':
        if (isUntouched(before, found, record)) left.delete(uid);
        break;
      // Equivalent mutant (StringLiteral): Nothing is done about it here.
      case 'behind':
      // Equivalent mutants (ConditionalExpression, StringLiteral): Nothing is done about it here.
      case 'early':
      // Equivalent mutants (ConditionalExpression, StringLiteral): Nothing is done about it here.
      case 'fault':
        break;
      default:
        outcome satisfies never;
    }
  }
  const whole = everything === undefined ? {} : { everything, outOfReach };
  const failures: Failures = { ...whole, pods, retryAfterSeconds, isHold };
  return { left, cancelled, schedule, blocks, failures, moved };
}

/** Whether nobody told anything newer of a pod, or moved its deadline elsewhere, since its partition was read. */
function isUntouched(before: Partition, found: Partition, record: EvictionRecord): boolean {
  const stored = found.scheduled.get(record.uid);
  return (
    stored !== undefined &&
    same(stored.version, record.version) &&
    // Equivalent mutant (OptionalChaining): What was due stood before.
    [before.scheduled.get(record.uid)?.fireAt, record.fireAt].includes(stored.fireAt) &&
    same(found.node?.version, before.node?.version) &&
    same(found.node?.podsVersion, before.node?.podsVersion)
  );
}

const same = (a: Version | undefined, b: Version | undefined): boolean =>
  a && b ? compareVersions(a, b) === 0 : a === b;
