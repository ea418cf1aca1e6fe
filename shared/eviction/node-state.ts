import { countdownsOf, setAnewSince } from '#shared/taints/deadline.ts';
import type { LiveTaint, Taint } from '#shared/taints/taint.ts';
import { evictingTaints } from '#shared/taints/virtual.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import { begunBy, compareVersions, type Delta, isAhead, latestOf, newer, type SeenTaint } from './facts.ts';
import type { NodeState, TimedTaint } from './records.ts';
import { MAX_ASKED_MS } from './retry.ts';

/**
 * The node's state after a delta that is received at `now`, which is no earlier than the delta was observed. Facts older than the known
 * ones change only the starts of countdowns, which any delta may raise. A deleted node keeps its last known taints while it has pods.
 */
export function mergeNodeState(known: NodeState | undefined, delta: Delta, now: EpochMs): NodeState {
  const podsVersion = newer(known?.podsVersion, delta.kind === 'node' ? delta.version : undefined);
  const raised = known && raiseStarts(known, delta, now);
  const facts = clampStarts(mergeFacts(raised, delta, now), now);
  const merged = { ...facts, ...(podsVersion ? { podsVersion } : {}) };
  const [retry, blocked] = [nextTryBy(known?.retry, now), nextTryBy(known?.blocked, now)];
  if (merged.taints.length === 0) return merged;
  const waiting = blocked ? { ...merged, blocked } : merged;
  if (!retry) return waiting;
  // After a gap the cluster may answer again: what waits for its next try need not wait for that.
  // Equivalent mutant (ConditionalExpression): Only node deltas wake: the check is for the type checker.
  const woken = delta.kind === 'node' && delta.wake && retry.nextTryAt > now;
  return { ...waiting, retry: woken ? { ...retry, nextTryAt: now } : retry };
}

/**
 * The state without countdowns that start in the future: they were stored under a clock that was wrong, and would last until then. The
 * taint was there when these facts were true, or is doubted still.
 */
function clampStarts(node: NodeState, now: EpochMs): NodeState {
  if (!node.taints.some(({ since }) => isAhead(since, now))) return node;
  const taints = node.taints.map((taint) => {
    if (!isAhead(taint.since, now)) return taint;
    return { ...taint, since: isDoubtful(node, taint) ? now : Math.min(now, node.observedAt) };
  });
  return { ...node, taints };
}

/** A next try that no rule puts off so far was stored under a clock that was wrong: it is due. */
const nextTryBy = <T extends { readonly nextTryAt: EpochMs }>(
  next: T | undefined,
  now: EpochMs,
): T | undefined => (next && next.nextTryAt > now + MAX_ASKED_MS ? { ...next, nextTryAt: now } : next);

/**
 * The known state with its countdowns started no earlier than a delta proves, however old that is and whoever sent
 * it. A countdown that stands only ever starts later, so a message that was late, or told by a relay that has lost
 * its lease, cannot make a pod go early:
 * - where the taint appeared, it was not there before;
 * - where a delta lacks it, it was not there then;
 * - where the taint itself names another moment than before, it was set again. A time that is ahead proves nothing.
 */
export function raiseStarts(known: NodeState, delta: Delta, now: EpochMs): NodeState {
  const toldOf = countdownsOf(delta.taints);
  const anewAt = setAnewSince(known.taints, delta.taints);
  const taints = known.taints.map((stored) => {
    const told = toldOf(stored);
    if (told) {
      const standing = reset(stored, anewAt(told), told.seenAt, now);
      return told.known === 'appeared' ? raised(standing, told.seenAt, now) : standing;
    }
    // A delta of a deleted node, whose taints nobody has seen, proves nothing.
    return delta.deletedAt === undefined ? raised(stored, delta.observedAt, now, 'found') : stored;
  });
  return { ...known, taints };
}

/**
 * The countdown, started at `at` or when it is known to have started already; never later than clocks may differ. `known`: `found` when
 * nobody saw the taint come, only that it was not there at `at`.
 */
function raised(
  taint: TimedTaint,
  at: EpochMs,
  now: EpochMs,
  known: TimedTaint['known'] = 'appeared',
): TimedTaint {
  const since = begunBy(at, now);
  return since > taint.since ? { ...taint, since, known } : taint;
}

/**
 * The countdown, restarted if the taint, seen by `seenAt`, names a time at which it was set again. A time ahead of `latest`, the latest
 * that it may be now, is ignored: otherwise, each such write would put the eviction off.
 */
const reset = (
  stored: TimedTaint,
  anewAt: EpochMs | undefined,
  seenAt: EpochMs,
  now: EpochMs,
  latest: EpochMs = now,
): TimedTaint =>
  // Equivalent mutant (ConditionalExpression): What is not said is no number, and no number is later than
  // another: the countdown stays.
  anewAt === undefined || isAhead(anewAt, latest) ? stored : raised(stored, latestOf(anewAt, seenAt), now);

function mergeFacts(known: NodeState | undefined, delta: Delta, now: EpochMs): NodeState {
  // Equivalent mutant (EqualityOperator): Of one version there is one delta, and what it says is known
  // already.
  if (known && compareVersions(delta.version, known.version) < 0) return known;
  const { version, deletedAt, taintsStamp, guardRevision } = delta;
  const seen = {
    version,
    observedAt: delta.observedAt,
    ...(guardRevision === undefined ? {} : { guardRevision }),
  };
  // Equivalent mutant (ArrayDeclaration): A text has neither key nor effect, so no taint continues it; it
  // stands twice.
  const storedOf = countdownsOf(known?.taints ?? []);
  const start = (taint: SeenTaint) => startCountdown(known, storedOf(taint), taint, now);
  if (deletedAt === undefined) {
    const stamp = taintsStamp === undefined ? {} : { taintsStamp };
    return { taints: delta.taints.map(start), ...seen, ...stamp };
  }
  const deserted = delta.kind === 'node' && delta.pods.length === 0 && !delta.others?.length;
  if (deserted) return { taints: [], ...seen, deletedAt };
  const last =
    delta.taints.length > 0
      ? delta.taints.filter((taint) => !isOutdated(known, storedOf(taint), taint)).map(start)
      : known?.taints.filter((taint) => !isDoubtful(known, taint));
  return { taints: last ?? [], ...seen, deletedAt };
}

/**
 * Whether a taint that is told of a deleted node was last heard of as gone, and found by nobody since: a relay that never saw the node
 * tells what was stored before that. As it saw nothing, its word must not end the doubt.
 */
function isOutdated(
  known: NodeState | undefined,
  stored: TimedTaint | undefined,
  { known: evidence, seenAt }: SeenTaint,
): boolean {
  if (!known || evidence !== 'found') return false;
  if (!stored) return seenAt <= known.observedAt;
  return isDoubtful(known, stored) && seenAt <= stored.since;
}

/**
 * A countdown goes on from its stored start, if there is one; else it starts when the relay saw it, or when the taint itself says that
 * it was added: the relay's clock may be behind. That counts at first sight alone, and not where it lies ahead.
 */
function startCountdown(
  known: NodeState | undefined,
  stored: TimedTaint | undefined,
  { seenAt, ...taint }: SeenTaint,
  now: EpochMs,
): TimedTaint {
  if (known && stored)
    return { ...taint, since: resumedSince(known, stored, begunBy(seenAt, now)), known: stored.known };
  // What is known of the node lacks the taint, so it came after that.
  const lackedAt = known?.deletedAt === undefined ? (known?.observedAt ?? seenAt) : seenAt;
  const since = begunBy(Math.max(seenAt, lackedAt), now);
  const { timeAdded } = taint;
  if (timeAdded === undefined || timeAdded <= since || isAhead(timeAdded, now)) return { ...taint, since };
  // It was not there before, by its own word.
  return { ...taint, since: timeAdded, known: 'appeared' };
}

/**
 * The start of a stored countdown that a delta tells on: if the taint was gone meanwhile, it came back unseen, at the
 * latest when it was seen again.
 */
function resumedSince(known: NodeState, stored: TimedTaint, seenAt: EpochMs): EpochMs {
  return isDoubtful(known, stored) ? Math.max(stored.since, seenAt) : stored.since;
}

/**
 * Whether a stored taint was last heard of as gone, by a delta that decided nothing. Only such a delta starts a countdown
 * after what is known of the node without having seen the taint appear.
 */
export function isDoubtful(known: NodeState, taint: TimedTaint): boolean {
  return taint.known === 'found' && taint.since > known.observedAt;
}

/**
 * Live NoExecute taints with the start of their countdowns: as stored, or `now` for a taint that isn't stored yet. `latest`: the latest
 * time that it may be now, by any clock.
 */
export function timeLiveTaints(
  known: NodeState | undefined,
  taints: readonly LiveTaint[],
  virtualKeys: readonly string[],
  now: EpochMs,
  latest: EpochMs = now,
): readonly TimedTaint[] {
  const evicting = evictingTaints(taints, virtualKeys);
  // Equivalent mutant (ArrayDeclaration): A text has neither key nor effect, so no taint continues it; it
  // stands twice.
  const storedOf = countdownsOf(known?.taints ?? []);
  // Equivalent mutant (ArrayDeclaration): A text has neither key nor effect, so no taint continues it.
  const anewAt = setAnewSince(known?.taints ?? [], evicting);
  return evicting.map((taint) => {
    const stored = storedOf(taint);
    if (!stored) return { ...taint, since: now, known: 'found' };
    const { since, known: evidence } = reset(stored, anewAt(taint), now, now, latest);
    return { ...taint, since, known: evidence };
  });
}

/**
 * Whether a delta tells all that it takes to decide pods of a node in this state. One that lacks a taint of the node
 * brings none of the tolerations that match it.
 */
export function tellsOf(delta: Delta, node: NodeState): boolean {
  return node.taints.every((taint) => delta.taints.some((told) => isSameTaint(told, taint)));
}

/** Whether two states say the same of the node, whatever their versions. */
export function sameFacts(a: NodeState | undefined, b: NodeState): boolean {
  return (
    a !== undefined &&
    a.deletedAt === b.deletedAt &&
    a.taintsStamp === b.taintsStamp &&
    a.taints.length === b.taints.length &&
    a.taints.every((taint, index) => sameTimed(taint, b.taints[index]))
  );
}

function sameTimed(a: TimedTaint, b: TimedTaint | undefined): boolean {
  return (
    // Equivalent mutant (ConditionalExpression): The lists are as long as each other, so there is a second
    // taint: the check is for the type checker.
    b !== undefined &&
    isSameTaint(a, b) &&
    a.since === b.since &&
    a.known === b.known &&
    a.timeAdded === b.timeAdded
  );
}

/** Reports whether two taints are one to the API server: of the same key, value and effect. */
export function isSameTaint(a: Taint, b: Taint): boolean {
  return a.key === b.key && (a.value ?? '') === (b.value ?? '') && a.effect === b.effect;
}
