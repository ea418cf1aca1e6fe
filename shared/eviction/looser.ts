import type { EpochMs } from '#shared/time/epoch-ms.ts';
import { isOn } from './gate.ts';
import type { Policy, Selection, Threshold } from './policy.ts';
import { type LabelSelector, matchesPattern } from './selectors.ts';

/** Reports whether another value of a setting could evict a pod that would stay, or evict a pod sooner. */
type IsLooser = (before: Policy, after: Policy, now: EpochMs) => boolean;

const LOOSER: Readonly<Record<keyof Policy, IsLooser>> = {
  mode: (before, after) => before.mode === 'observe' && after.mode === 'enforce',
  guard: ({ guard: before }, { guard: after }) =>
    !before.dryRun &&
    (['cluster', 'zone', 'customTaints'] as const).some((scope) =>
      isHigher(before[scope], after.dryRun ? undefined : after[scope]),
    ),
  evictionRate: ({ evictionRate: before = NONE }, { evictionRate: after = NONE }) => after > before,
  releaseRate: (before, after) => after.releaseRate > before.releaseRate,
  maxEvictionsPerWorkload: ({ maxEvictionsPerWorkload: before }, { maxEvictionsPerWorkload: after }) => {
    if (!before || !after) return before !== undefined;
    const [least, most] = [before.count, after.count].map((count) => Number.parseInt(`${count}`, 10));
    return (
      typeof before.count !== typeof after.count ||
      Number(most) > Number(least) ||
      after.windowMs < before.windowMs
    );
  },
  exclude: (before, after, now) => !areCovered(before.exclude, after.exclude, now),
  include: (before, after, now) =>
    before.include.length > 0 &&
    (after.include.length === 0 || !areCovered(after.include, before.include, now)),
  method: ({ method: before }, { method: after }) => {
    // The API server may permit one kind of request, and deny the other.
    if (before.kind === 'delete' || after.kind === 'delete') return before.kind !== after.kind;
    if (after.onTimeout === 'fail') return before.onTimeout === 'fail' && after.timeoutMs > before.timeoutMs;
    return before.onTimeout === 'fail' || after.timeoutMs < before.timeoutMs;
  },
  // They replace the seconds of pods, which may be fewer or more.
  tolerationSecondsOverrides: (
    { tolerationSecondsOverrides: before },
    { tolerationSecondsOverrides: after },
  ) => Object.keys({ ...before, ...after }).some((key) => (after[key] ?? 0) < (before[key] ?? NONE)),
  requireExpiredLease: (before, after) => before.requireExpiredLease && !after.requireExpiredLease,
  treatAsNoExecute: (before, after) =>
    after.treatAsNoExecute.some((key) => !before.treatAsNoExecute.includes(key)),
  giveUpAfterMs: (before, after) => after.giveUpAfterMs > before.giveUpAfterMs,
};

const NONE = Number.POSITIVE_INFINITY;

/**
 * Returns the settings that could evict more pods, or sooner. None in observe mode.
 */
export const looserSettings = (before: Policy, after: Policy, now: EpochMs): readonly (keyof Policy)[] =>
  after.mode === 'observe'
    ? []
    : (Object.keys(LOOSER) as (keyof Policy)[]).filter((setting) => LOOSER[setting](before, after, now));

type Limit = Threshold & { readonly windowMs?: number };

const isHigher = (before: Limit | undefined, after: Limit | undefined): boolean =>
  before !== undefined &&
  (after === undefined ||
    after.percent > before.percent ||
    after.nodes > before.nodes ||
    (after.windowMs ?? 0) < (before.windowMs ?? 0));

/** Reports whether each pod that the first entries select from `now` on is also selected by one of the others. */
function areCovered(some: readonly Selection[], others: readonly Selection[], now: EpochMs): boolean {
  return some.filter(({ until }) => isOn(until, now)).every((narrow) => isCovered(narrow, others));
}

const LISTS = ['namespaces', 'ownerKinds', 'priorityClassNames', 'taints'] as const;

/** Splits an entry by its lists only if no other entry covers it whole: it may have many combinations. */
function isCovered(narrow: Selection, wide: readonly Selection[]): boolean {
  if (wide.some((each) => covers(each, narrow))) return true;
  const list = LISTS.find((name) => (narrow[name]?.length ?? 0) > 1);
  return (
    list !== undefined &&
    narrow[list]?.every((name) => isCovered({ ...narrow, [list]: [name] }, wide)) === true
  );
}

const covers = (wide: Selection, narrow: Selection): boolean =>
  LISTS.every((list) => {
    const isSame = list === 'namespaces' ? matchesPattern : (one: string, other: string) => one === other;
    const names = wide[list];
    return !names || narrow[list]?.every((name) => names.some((each) => isSame(each, name))) === true;
  }) &&
  (wide.until ?? NONE) >= (narrow.until ?? NONE) &&
  isStricter(narrow.labels, wide.labels) &&
  isStricter({ matchLabels: narrow.annotations ?? {} }, { matchLabels: wide.annotations ?? {} });

const isStricter = (narrow: LabelSelector | undefined, wide: LabelSelector | undefined): boolean =>
  conditionsOf(wide).every((condition) => conditionsOf(narrow).includes(condition));

const conditionsOf = ({ matchLabels = {}, matchExpressions = [] }: LabelSelector = {}): readonly string[] =>
  [...Object.entries(matchLabels), ...matchExpressions].map((condition) => JSON.stringify(condition));
