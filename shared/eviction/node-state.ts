import { defined } from '#shared/defined.ts';
import { countdownsOf, setAgainSince } from '#shared/taints/deadline.ts';
import type { LiveTaint, Taint } from '#shared/taints/taint.ts';
import { evictingTaints } from '#shared/taints/virtual.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import { begunBy, compareVersions, type Delta, isAhead, latestOf, newer, type SeenTaint } from './facts.ts';
import type { NodeState, TimedTaint } from './records.ts';
import { changeTries, MAX_RETRY_AFTER_MS } from './retry.ts';
import { isHeldText } from './skew.ts';

/**
 * Returns the state after a delta, received at `now`, not before `observedAt`. An older delta than the known facts only
 * raises starts of countdowns. A deleted node keeps its last known taints while it has pods.
 */
export function mergeNodeState(known: NodeState | undefined, delta: Delta, now: EpochMs): NodeState {
  const podsVersion = newer(known?.podsVersion, delta.kind === 'node' ? delta.version : undefined);
  const raised = known && raiseStarts(known, delta, now);
  const facts = clampStarts(mergeFacts(raised, delta, now), now);
  const merged = { ...facts, ...defined({ podsVersion }) };
  if (merged.taints.length === 0) return merged;
  const blocked = nextTryBy(known?.blocked, now);
  const { retry, outage } = known ?? {};
  const waiting = {
    ...merged,
    ...defined({ blocked, retry, outage }),
  };
  // A wake ends only the waits whose cause is over. The server rejects all other failed evictions.
  const { answeredAt = 0 } = delta.kind === 'node' && delta.wake ? delta : {};
  return changeTries(waiting, (stored) => {
    const next = nextTryBy(stored, now);
    const isOver = 'triedAt' in stored ? answeredAt > stored.triedAt : isHeldText(stored.error);
    return isOver && answeredAt > 0 && stored.attempts > 0
      ? { ...stored, attempts: 0, nextTryAt: now }
      : next;
  });
}

/**
 * Countdowns that start in the future, from a wrong clock, restart when the known facts were true, or at `now` if the
 * taint is in doubt.
 */
function clampStarts(node: NodeState, now: EpochMs): NodeState {
  if (!node.taints.some(({ since }) => isAhead(since, now))) return node;
  const taints = node.taints.map((taint) => {
    if (!isAhead(taint.since, now)) return taint;
    return { ...taint, since: isDoubtful(node, taint) ? now : Math.min(now, node.observedAt) };
  });
  return { ...node, taints };
}

/** Makes a next try due if it is later than any rule allows: a wrong clock stored it. */
const nextTryBy = <T extends { readonly nextTryAt: EpochMs }>(
  next: T | undefined,
  now: EpochMs,
): T | undefined => (next && next.nextTryAt > now + MAX_RETRY_AFTER_MS ? { ...next, nextTryAt: now } : next);

/**
 * Returns the known state with each countdown started no earlier than the delta proves. Any delta counts, however old
 * and from any relay. The countdown of a stored taint only ever starts later. So a delayed message, or a relay that
 * lost its lease, can't evict a pod early:
 * - A taint that appeared was not there before.
 * - A taint that the delta lacks was not there when the delta was observed.
 * - A taint whose own time changed was set again. A time in the future proves nothing.
 */
export function raiseStarts(known: NodeState, delta: Delta, now: EpochMs): NodeState {
  const sentOf = countdownsOf(delta.taints);
  const setAgainAt = setAgainSince(known.taints, delta.taints);
  const taints = known.taints.map((stored) => {
    const sent = sentOf(stored);
    if (sent) {
      const current = reset(stored, setAgainAt(sent), sent.seenAt, now);
      return sent.known === 'added' ? raised(current, sent.seenAt, now) : current;
    }
    // A delta of a deleted node whose taints no relay saw does not prove that a taint was absent.
    if (delta.deletedAt !== undefined) return stored;
    const lacked = raised(stored, delta.observedAt, now, 'preexisting');
    // The taint came back before a newer delta had it, which continued the old countdown.
    const isLate = lacked !== stored && compareVersions(delta.version, known.version) < 0;
    return isLate ? raised(lacked, known.observedAt, now, 'preexisting') : lacked;
  });
  return { ...known, taints };
}

/**
 * Raises a start to `at`, unless it is later; too far ahead counts as `now`. `known`: `found` if the relay only saw
 * that the taint was absent at `at`.
 */
function raised(
  taint: TimedTaint,
  at: EpochMs,
  now: EpochMs,
  known: TimedTaint['known'] = 'added',
): TimedTaint {
  const since = begunBy(at, now);
  return since > taint.since ? { ...taint, since, known } : taint;
}

/**
 * Restarts a countdown whose taint, seen by `seenAt`, was set again at `anewAt`. One ahead of `latest`, the latest time
 * that it may be now, is ignored: otherwise, each such write would delay the eviction.
 */
const reset = (
  stored: TimedTaint,
  setAgainAt: EpochMs | undefined,
  seenAt: EpochMs,
  now: EpochMs,
  latest: EpochMs = now,
): TimedTaint =>
  setAgainAt === undefined || isAhead(setAgainAt, latest)
    ? stored
    : raised(stored, latestOf(setAgainAt, seenAt), now);

function mergeFacts(known: NodeState | undefined, delta: Delta, now: EpochMs): NodeState {
  if (known && compareVersions(delta.version, known.version) < 0) return known;
  const { version, deletedAt, taintsStamp, guardRevision } = delta;
  const seen = {
    version,
    observedAt: delta.observedAt,
    ...defined({ guardRevision }),
  };
  // A node of the same name was created since: its taints continue no countdown of the deleted node.
  const isRecreated = known?.deletedAt !== undefined && deletedAt === undefined;
  const storedOf = countdownsOf(isRecreated ? [] : (known?.taints ?? []));
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
 * Reports whether a delta of a deleted node has a taint last reported as removed, which no relay has seen since: a
 * relay that never saw the node sends the stored taints. Such a delta must not end the doubt.
 */
function isOutdated(
  known: NodeState | undefined,
  stored: TimedTaint | undefined,
  { known: evidence, seenAt }: SeenTaint,
): boolean {
  if (!known || evidence !== 'preexisting') return false;
  if (!stored) return seenAt <= known.observedAt;
  return isDoubtful(known, stored) && seenAt <= stored.since;
}

/**
 * A taint's stored start, or else when the relay saw it. A later `timeAdded` replaces the latter, because the relay's
 * clock may be behind; it counts only without a stored start, and not in the future.
 */
function startCountdown(
  known: NodeState | undefined,
  stored: TimedTaint | undefined,
  { seenAt, ...taint }: SeenTaint,
  now: EpochMs,
): TimedTaint {
  if (known && stored)
    return { ...taint, since: resumedSince(known, stored, begunBy(seenAt, now)), known: stored.known };
  // The known state lacks the taint, so the taint was added after `observedAt`.
  const lackedAt = known?.deletedAt === undefined ? (known?.observedAt ?? seenAt) : seenAt;
  const since = begunBy(Math.max(seenAt, lackedAt), now);
  const { timeAdded } = taint;
  if (timeAdded === undefined || timeAdded <= since || isAhead(timeAdded, now)) return { ...taint, since };
  // By its own time, the taint was not there before.
  return { ...taint, since: timeAdded, known: 'added' };
}

/** If a continued taint was removed meanwhile, it came back unseen, no later than `seenAt`. */
function resumedSince(known: NodeState, stored: TimedTaint, seenAt: EpochMs): EpochMs {
  return isDoubtful(known, stored) ? Math.max(stored.since, seenAt) : stored.since;
}

/**
 * Reports whether a stored taint was last reported as removed, by a delta that decided nothing: only such a delta
 * starts a countdown after `observedAt` without having seen the taint appear.
 */
export function isDoubtful(known: NodeState, taint: TimedTaint): boolean {
  return taint.known === 'preexisting' && taint.since > known.observedAt;
}

/** Live taints that evict, with stored starts, or `now` for new ones. `latest`: the latest time that it may be now. */
export function timeLiveTaints(
  known: NodeState | undefined,
  taints: readonly LiveTaint[],
  treatAsNoExecute: readonly string[],
  now: EpochMs,
  latest: EpochMs = now,
): readonly TimedTaint[] {
  const evicting = evictingTaints(taints, treatAsNoExecute);
  const storedOf = countdownsOf(known?.taints ?? []);
  const setAgainAt = setAgainSince(known?.taints ?? [], evicting);
  return evicting.map((taint) => {
    const stored = storedOf(taint);
    if (!stored) return { ...taint, since: now, known: 'preexisting' };
    const { since, known: evidence } = reset(stored, setAgainAt(taint), now, now, latest);
    return { ...taint, since, known: evidence };
  });
}

/** Reports whether a delta has all facts: without a taint of the node, it also lacks the matching tolerations. */
export function coversTaints(delta: Delta, node: NodeState): boolean {
  return node.taints.every((taint) => delta.taints.some((sent) => isSameTaint(sent, taint)));
}

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
    b !== undefined &&
    isSameTaint(a, b) &&
    a.since === b.since &&
    a.known === b.known &&
    a.timeAdded === b.timeAdded
  );
}

/** Same key, value, and effect, as for the API server. */
export function isSameTaint(a: Taint, b: Taint): boolean {
  return a.key === b.key && (a.value ?? '') === (b.value ?? '') && a.effect === b.effect;
}
