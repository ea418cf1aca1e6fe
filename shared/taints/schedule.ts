import { firstMatch } from './match.ts';
import type { Effect, MatchOptions, Taint, Toleration } from './taint.ts';

/** What the scheduler's plugin `TaintToleration` says of one pod on one node. */
export interface SchedulerVerdict {
  /** Whether every NoSchedule taint is tolerated. */
  readonly noSchedule: boolean;
  /** Whether every NoExecute taint is tolerated; for how long does not matter. */
  readonly noExecute: boolean;
  /** The first NoSchedule or NoExecute taint in the node's order that keeps the pod away; `undefined`: it fits. */
  readonly firstUntolerated: Taint | undefined;
  /** Untolerated PreferNoSchedule taints: the raw score, less is better. */
  readonly preferCount: number;
}

/** The best score a scheduler plugin gives a node. */
const MAX_NODE_SCORE = 100;

/** Judges one pod on one node as the scheduler would. Upstream: `TaintToleration.Filter` and `.Score`. */
export function schedulerVerdict(
  taints: readonly Taint[],
  tolerations: readonly Toleration[],
  options: MatchOptions,
): SchedulerVerdict {
  const untolerated = taints.filter((taint) => !firstMatch(tolerations, taint, options));
  const having = (effect: Effect): readonly Taint[] => untolerated.filter((taint) => taint.effect === effect);
  return {
    noSchedule: having('NoSchedule').length === 0,
    noExecute: having('NoExecute').length === 0,
    firstUntolerated: untolerated.find(({ effect }) => effect === 'NoSchedule' || effect === 'NoExecute'),
    preferCount: having('PreferNoSchedule').length,
  };
}

/**
 * The `preferCount`s of all nodes as final scores, 0 (most untolerated taints) to 100, in the same order.
 * Upstream: `DefaultNormalizeScore`, reversed, in integers.
 */
export function normaliseScores(preferCounts: readonly number[]): readonly number[] {
  const most = preferCounts.reduce((max, count) => Math.max(max, count), 0);
  if (most === 0) return preferCounts.map(() => MAX_NODE_SCORE);
  return preferCounts.map((count) => MAX_NODE_SCORE - Math.trunc((MAX_NODE_SCORE * count) / most));
}
