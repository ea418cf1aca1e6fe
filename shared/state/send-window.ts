import type { PodUid } from '#shared/eviction/identity.ts';

/** How long a delete counts. */
const WINDOW_MS = 1_000;

/** Turns of pods that wait for room are rounded up to this, so that a node needs few passes for them. */
const TOGETHER_MS = 50;

interface CountedDelete {
  /** Absent: it was answered. */
  readonly uid?: PodUid | undefined;
  readonly end: number;
}

/** One process's deletes of one limit, within any second never more than the limit, rounded up. Stopwatch times. */
export class SendWindow {
  /** There is no room before: another process may have sent deletes. */
  readonly #closedTo: number;
  #deletes: readonly CountedDelete[] = [];
  #turns: readonly number[] = [];

  constructor(begunAt: number) {
    this.#closedTo = begunAt + WINDOW_MS;
  }

  hasRoom(perSecond: number, now: number): boolean {
    // No delete counts for as long as three windows, unless the stopwatch was set back.
    this.#deletes = this.#deletes.filter(({ end }) => end > now && end < now + 3 * WINDOW_MS);
    return now >= this.#closedTo && this.#deletes.length < Math.ceil(perSecond);
  }

  /** Counts the delete of a pod that just got a permit. */
  add(uid: PodUid | undefined, now: number): void {
    this.#deletes = inOrder([...this.#deletes, { uid, end: now + WINDOW_MS }]);
  }

  /** Counts the delete of a pod from `sentBy`. `answered`: the pod's next delete counts, too. */
  move(uid: PodUid, sentBy: number, answered: boolean): void {
    const index = this.#deletes.findLastIndex((each) => each.uid === uid);
    const moved = { ...(answered ? {} : { uid }), end: sentBy + WINDOW_MS };
    this.#deletes = inOrder([...this.#deletes.filter((_, at) => at !== index), moved]);
  }

  nextTurn(perSecond: number, now: number): number {
    this.#turns = this.#turns.filter((turn) => turn > now);
    const index = this.#deletes.length - Math.ceil(perSecond) + this.#turns.length;
    const behind = (this.#turns.at(-1) ?? now) + WINDOW_MS / perSecond;
    const free = index < 0 ? this.#closedTo : (this.#deletes[index]?.end ?? behind);
    const turn = Math.max(free, this.#closedTo);
    this.#turns = [...this.#turns, turn];
    return turn;
  }
}

const inOrder = (deletes: readonly CountedDelete[]): readonly CountedDelete[] =>
  deletes.toSorted((a, b) => a.end - b.end);

/** Rounds up the turn of a pod that waits for room. */
export const together = (turn: number): number => Math.ceil(turn / TOGETHER_MS) * TOGETHER_MS;
