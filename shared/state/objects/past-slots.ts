import type { PodUid } from '#shared/eviction/identity.ts';
import { type EndedPod, isTombstone } from '#shared/eviction/records.ts';
import { ENDED_WINDOW_MS } from '#shared/state/store.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import type { GonePods, KeptNode, PastSlots } from './node-eviction.ts';

/*
 * A node's own object is written with each eviction, so it holds only the latest ends, up to a number of characters.
 * Then they all move into objects beside it. The cost of an eviction therefore does not depend on the number of
 * earlier ones.
 */

/** Ends stay longer than they are needed, because a writer's clock may be ahead of a reader's. */
export const RECENT_MS = ENDED_WINDOW_MS + 5 * 60_000;
/** Maximum of characters of ends, as JSON, in the node's own object: some 250 ends, which take 16 kB packed. */
const OWN_CHARS = 100_000;
const OWN_HISTORY_CHARS = 8 * 1024;
/** Maximum of characters of one object beside it, packed: some 2,000 tombstones. */
export const SLOT_CHARS = 64 * 1024;
/** Maximum of objects beside it: some 64,000 tombstones in half an hour, which is 40 pods a second. */
export const MAX_SLOTS = 32;

export const NO_SLOTS: PastSlots = { current: 0, newest: [] };

export const isFull = ({ ended, history = '' }: KeptNode): boolean =>
  history.length > OWN_HISTORY_CHARS || JSON.stringify(ended).length > OWN_CHARS;

/** Returns a filter for ends that are recent enough to matter. */
export const recently =
  (now: EpochMs) =>
  ({ endedAt }: Pick<EndedPod, 'endedAt'>): boolean =>
    endedAt >= now - RECENT_MS;

export const liveSlots = ({ newest }: PastSlots, now: EpochMs): readonly number[] =>
  newest.flatMap((endedAt, slot) => (recently(now)({ endedAt }) ? [slot] : []));

/** Returns the next object to fill: one whose ends are all too old, or a new one. `undefined`: all are in use. */
export function nextSlot({ current, newest }: PastSlots, now: EpochMs): number | undefined {
  const isFree = (endedAt: EpochMs, slot: number): boolean => slot !== current && !recently(now)({ endedAt });
  const free = newest.findIndex(isFree);
  if (free >= 0) return free;
  const added = Math.max(newest.length, current + 1);
  return added < MAX_SLOTS ? added : undefined;
}

export function filled({ newest }: PastSlots, slot: number, ends: readonly EndedPod[]): PastSlots {
  const all = [...newest];
  while (all.length <= slot) all.push(0);
  // Not spread, because there can be many ends.
  all[slot] = ends.reduce((latest, { endedAt }) => Math.max(latest, endedAt), all[slot] ?? 0);
  return { current: slot, newest: all };
}

/** Adds ends to such an object, and drops old ones. Tombstones keep only UID, time and outcome there. */
export function slotWith(
  kept: KeptNode,
  ends: readonly EndedPod[],
  now: EpochMs,
): Pick<KeptNode, 'ended' | 'gone'> {
  const all = [...endsOf(kept), ...ends].filter(recently(now));
  const tombstones = new Map(all.filter(isTombstone).map((end) => [end.uid, end]));
  const others = new Map(all.filter(({ uid }) => !tombstones.has(uid)).map((end) => [end.uid, end]));
  const groups = Map.groupBy(tombstones.values(), ({ endedAt, outcome }) => `${endedAt} ${outcome}`);
  return {
    ended: [...others.values()],
    gone: [...groups.values()].map(
      (same): GonePods => [
        same[0]?.endedAt ?? 0,
        same[0]?.outcome === 'evicted' ? 'evicted' : 'already-gone',
        same.map(({ uid }) => uid),
      ],
    ),
  };
}

export function endsOf(
  { ended, gone }: Pick<KeptNode, 'ended' | 'gone'>,
  only?: ReadonlySet<PodUid>,
): readonly EndedPod[] {
  const matches = (uid: PodUid): boolean => !only || only.has(uid);
  return [
    ...ended.filter(({ uid }) => matches(uid)),
    ...gone.flatMap(([at, outcome, uids]) => uids.filter(matches).map((uid) => tombstone(uid, outcome, at))),
  ];
}

/** Its version belongs to no delta, so no delta counts as the one that ended the eviction. */
const tombstone = (uid: PodUid, outcome: 'evicted' | 'already-gone', endedAt: EpochMs): EndedPod => ({
  uid,
  namespace: '',
  name: '',
  podSince: 0,
  dueAt: endedAt,
  causes: [],
  outcome,
  version: { epoch: 0, sequence: 0 },
  endedAt,
});
