import type { Mismatch } from './suite.ts';
import type { Expectation, Played, TimelineCase } from './timeline.ts';

type ExpectedDeletion = Expectation['deletions'][number];
type ExpectedCancellation = Expectation['cancellations'][number];
type Deletion = Played['deletions'][number];
type Cancellation = Played['cancellations'][number];

const TOLERANCE_SECONDS = 1;

/**
 * Compares the result of a timeline with a case's expectation: exactly these deletions and, unless they are optional,
 * exactly these cancellations, in any order, each within a second.
 */
export function compareTimeline(given: TimelineCase, played: Played): Mismatch | undefined {
  const { expect, cancellationsOptional } = given;
  const deletions = firstDeletions(played);
  const agrees =
    played.wrongUid.length === 0 &&
    pairsUp(expect.deletions, deletions, isDeletion) &&
    (cancellationsOptional || cancellationsAgree(expect.cancellations, played.cancellations, deletions));
  if (agrees) return undefined;
  const wrongUid = played.wrongUid.length > 0 ? { wrongUid: played.wrongUid } : {};
  return { expected: expect, got: { deletions, cancellations: played.cancellations, ...wrongUid } };
}

/** Returns the first deletion of each pod: a repeated deletion of an existing pod counts once. */
function firstDeletions(played: Played): readonly Deletion[] {
  const first = new Map<string, Deletion>();
  for (const deletion of played.deletions) {
    if (!first.has(deletion.uid)) first.set(deletion.uid, deletion);
  }
  return [...first.values()];
}

/** A cancellation at the time of the pod's eviction may be present or absent. */
function cancellationsAgree(
  expected: readonly ExpectedCancellation[],
  played: readonly Cancellation[],
  deletions: readonly Deletion[],
): boolean {
  const isMoot = (cancellation: Cancellation): boolean =>
    deletions.some(({ uid, t }) => uid === cancellation.uid && isNear(t, cancellation.t));
  const unexpected = played.filter((each) => !expected.some((wanted) => isCancellation(wanted, each)));
  const wanted = played.filter((each) => !unexpected.includes(each));
  return unexpected.every(isMoot) && pairsUp(expected, wanted, isCancellation);
}

function isDeletion(expected: ExpectedDeletion, played: Deletion): boolean {
  const latest = expected.t + Math.max(TOLERANCE_SECONDS, expected.within ?? 0);
  return played.uid === expected.uid && played.t >= expected.t - TOLERANCE_SECONDS && played.t <= latest;
}

function isCancellation(expected: ExpectedCancellation, played: Cancellation): boolean {
  return (
    played.pod === expected.pod &&
    played.because === expected.because &&
    (expected.uid === undefined || played.uid === expected.uid) &&
    isNear(expected.t, played.t)
  );
}

function isNear(a: number, b: number): boolean {
  return Math.abs(a - b) <= TOLERANCE_SECONDS;
}

/** Reports whether both lists pair up: each expected element matches a separate played one, and none is left. */
function pairsUp<E, P>(expected: readonly E[], played: readonly P[], same: (e: E, p: P) => boolean): boolean {
  const left = [...played];
  for (const wanted of expected) {
    const index = left.findIndex((candidate) => same(wanted, candidate));
    if (index < 0) return false;
    left.splice(index, 1);
  }
  return left.length === 0;
}
