import type { PodUid } from '#shared/eviction/identity.ts';
import { type EndedPod, isTombstone } from '#shared/eviction/records.ts';
import { ENDED_WINDOW_MS } from '#shared/state/store.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import type { GonePods, KeptNode, PastSlots } from './node-eviction.ts';

/*
 * A node's own object is written with each eviction, so it holds what ended last, up to so many characters. What is more goes over into
 * objects beside it, all at once: what an eviction costs does not hang on how many were before.
 */

/** What ended stays for longer than it is asked for: a writer's clock may be ahead of a reader's. */
const RECENT_MS = ENDED_WINDOW_MS + 5 * 60_000;
/** Of what ended, as JSON, in the node's own object: some 250 ends, which take 16 kB packed. */
const OWN_CHARS = 100_000;
/** Of what was noted, packed, in the node's own object. */
const OWN_HISTORY_CHARS = 8 * 1024;
/** Of one object beside it, packed: some 2,000 tombstones. */
export const SLOT_CHARS = 64 * 1024;
/** Objects beside it: some 64,000 tombstones in half an hour, so 40 pods a second. */
export const MAX_SLOTS = 32;

export const NO_SLOTS: PastSlots = { current: 0, newest: [] };

/** Whether what ended goes over into objects beside the node's own before more is written there. */
export const isFull = ({ ended, history = '' }: KeptNode): boolean =>
  history.length > OWN_HISTORY_CHARS || JSON.stringify(ended).length > OWN_CHARS;

/** What ended so lately that it has to be known. */
export const recently =
  (now: EpochMs) =>
  ({ endedAt }: Pick<EndedPod, 'endedAt'>): boolean =>
    endedAt >= now - RECENT_MS;

/** The numbers of the objects that hold anything that may be asked for. */
export const liveSlots = ({ newest }: PastSlots, now: EpochMs): readonly number[] =>
  newest.flatMap((endedAt, slot) => (recently(now)({ endedAt }) ? [slot] : []));

/** The next object to fill: one of which all is too old, or a new one. `undefined`: all are in use. */
export function nextSlot({ current, newest }: PastSlots, now: EpochMs): number | undefined {
  const isFree = (endedAt: EpochMs, slot: number): boolean => slot !== current && !recently(now)({ endedAt });
  const free = newest.findIndex(isFree);
  if (free >= 0) return free;
  const added = Math.max(newest.length, current + 1);
  return added < MAX_SLOTS ? added : undefined;
}

/** Slots of which `slot` was filled by `ends`. */
export function filled({ newest }: PastSlots, slot: number, ends: readonly EndedPod[]): PastSlots {
  const all = [...newest];
  while (all.length <= slot) all.push(0);
  // Not spread: these may be many.
  all[slot] = ends.reduce((latest, { endedAt }) => Math.max(latest, endedAt), all[slot] ?? 0);
  return { current: slot, newest: all };
}

/** What such an object holds with more in it, and without what is too old. Tombstones have a UID and a moment there, and nothing else. */
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
        same[0]?.outcome === 'done' ? 'done' : 'gone',
        same.map(({ uid }) => uid),
      ],
    ),
  };
}

/** All that an object says of ends; of these pods, if they are named. */
export function endsOf(
  { ended, gone }: Pick<KeptNode, 'ended' | 'gone'>,
  only?: ReadonlySet<PodUid>,
): readonly EndedPod[] {
  const isAsked = (uid: PodUid): boolean => !only || only.has(uid);
  return [
    ...ended.filter(({ uid }) => isAsked(uid)),
    ...gone.flatMap(([at, outcome, uids]) => uids.filter(isAsked).map((uid) => tombstone(uid, outcome, at))),
  ];
}

/** Of no delta is its version, so none is taken for the one that ended it. */
const tombstone = (uid: PodUid, outcome: 'done' | 'gone', endedAt: EpochMs): EndedPod => ({
  ...{ uid, namespace: '', name: '', podSince: 0, fireAt: endedAt, reasons: [] },
  ...{ outcome, version: { epoch: 0, sequence: 0 }, endedAt },
});
