import { countdownIdentity } from '#shared/taints/deadline.ts';
import type { Taint } from '#shared/taints/taint.ts';
import type { Delta, SeenTaint } from './facts.ts';
import type { EpochMs } from './identity.ts';
import type { NodeState, TimedTaint } from './records.ts';
import { compareVersions, newer, type Version } from './version.ts';

/**
 * What is known of a node after a delta. Facts older than the known ones change nothing. A deleted node keeps
 * its last known taints while it has pods.
 */
export function mergeNodeState(known: NodeState | undefined, delta: Delta): NodeState {
  const podsVersion = newer(known?.podsVersion, delta.kind === 'node' ? delta.version : undefined);
  return { ...mergeFacts(known, delta), ...(podsVersion ? { podsVersion } : {}) };
}

function mergeFacts(known: NodeState | undefined, delta: Delta): NodeState {
  if (known && compareVersions(delta.version, known.version) < 0) return known;
  const taints = startCountdowns(known, delta.taints, delta.version);
  const { version, deletedAt } = delta;
  if (deletedAt === undefined) return { taints, version };
  if (delta.kind === 'node' && delta.pods.length === 0) return { taints: [], version, deletedAt };
  return { taints: taints.length > 0 ? taints : (known?.taints ?? []), version, deletedAt };
}

/**
 * A countdown goes on from its stored start when the taint stayed: the same relay saw it at the same moment, or
 * another relay took over and cannot know better. It starts anew when the same relay saw it go and come back.
 */
function startCountdowns(
  known: NodeState | undefined,
  taints: readonly SeenTaint[],
  version: Version,
): readonly TimedTaint[] {
  return taints.map((taint) => {
    const before = known && sameCountdown(known, taint);
    const stayed = before && (before.seenAt === taint.seenAt || known.version.epoch !== version.epoch);
    return { ...taint, since: stayed ? Math.min(before.since, taint.seenAt) : taint.seenAt };
  });
}

/** The stored taint whose countdown this one continues. */
function sameCountdown(known: NodeState, taint: Taint): TimedTaint | undefined {
  const identity = countdownIdentity(taint);
  return known.taints.find((stored) => countdownIdentity(stored) === identity);
}

/** Live NoExecute taints with the start of their countdowns: as stored, or `now` for one not heard of yet. */
export function timeLiveTaints(
  known: NodeState | undefined,
  taints: readonly Taint[],
  now: EpochMs,
): readonly TimedTaint[] {
  return taints
    .filter((taint) => taint.effect === 'NoExecute')
    .map((taint) => {
      const stored = known && sameCountdown(known, taint);
      return { ...taint, since: stored?.since ?? now, seenAt: stored?.seenAt ?? now };
    });
}

/** Whether two states say the same of the node, whatever their versions. */
export function sameFacts(a: NodeState | undefined, b: NodeState): boolean {
  return (
    a !== undefined &&
    a.deletedAt === b.deletedAt &&
    a.taints.length === b.taints.length &&
    a.taints.every((taint, index) => sameTaint(taint, b.taints[index]))
  );
}

function sameTaint(a: TimedTaint, b: TimedTaint | undefined): boolean {
  return (
    b !== undefined &&
    a.key === b.key &&
    (a.value ?? '') === (b.value ?? '') &&
    a.effect === b.effect &&
    a.since === b.since &&
    a.seenAt === b.seenAt
  );
}
