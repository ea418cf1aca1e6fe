import type { Clock } from '#shared/time/clock.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';

type Speaker = 'a person' | 'the service';

/** A change of the policy, in force from then on. */
interface Order {
  readonly at: EpochMs;
  readonly speaker: Speaker;
  readonly text: string;
  /** With `the service`: the time when the file with this policy was written. */
  readonly editedAt: EpochMs;
}

/** A file as a replica sees it. */
interface Shown {
  readonly text: string;
  readonly editedAt: EpochMs;
}

/** The time by which a file is applied, including a late mount, a failover, and retries of failures. */
const TAKEN_MS = 7 * 60_000;

/**
 * Compares a policy file with users' actions: the newest change wins. A file that was applied once counts from the time it was
 * written, however often a process starts with it.
 */
export class PolicyFileJudge {
  readonly faults: string[] = [];
  readonly tried = { 'orders of people': 0, 'files taken': 0, 'orders that stand at the end': 0 };
  readonly #clock: Clock;
  readonly #accused: (what: string) => void;
  readonly #orders: Order[] = [];
  readonly #shown = new Map<string, Shown>();
  /** The time when each file, by its write time, was first applied. */
  readonly #taken = new Map<string, EpochMs>();
  #lastEdit: Shown | undefined;

  constructor(clock: Clock, accused: (what: string) => void) {
    this.#clock = clock;
    this.#accused = accused;
  }

  accuse(what: string): void {
    this.faults.push(what);
    this.#accused(what);
  }

  /** Notes that the file was written. */
  edited(text: string): void {
    this.#lastEdit = { text, editedAt: this.#clock.now() };
  }

  /** Returns the file as written last, which a replica now sees. */
  shows(replica: string): Shown {
    if (!this.#lastEdit) throw new Error('nobody wrote the file');
    this.#shown.set(replica, this.#lastEdit);
    return this.#lastEdit;
  }

  /** Returns the file that a replica sees now; `undefined`: it has seen none. */
  shownTo(replica: string): Shown | undefined {
    return this.#shown.get(replica);
  }

  /** Notes that a process has applied the file that it saw. */
  taken(shown: Shown | undefined): void {
    if (!shown || this.#taken.has(keyOf(shown))) return;
    this.tried['files taken'] += 1;
    this.#taken.set(keyOf(shown), this.#clock.now());
  }

  /** Notes the policy in force; returns whether it differs from the one before. */
  states(text: string, speaker: Speaker): boolean {
    const before = this.#orders.at(-1);
    if (before?.text === text) return false;
    const now = this.#clock.now();
    const files = [...this.#shown.values()].filter((each) => each.text === text);
    const editedAt = speaker === 'a person' ? now : Math.max(0, ...files.map((each) => each.editedAt));
    const order: Order = { at: now, speaker, text, editedAt };
    if (speaker === 'a person') this.tried['orders of people'] += 1;
    else if (before) this.#judgeFile(order, before);
    this.#orders.push(order);
    return true;
  }

  /** Accuses the service if an old file, applied or in force before, overrides a newer change. */
  #judgeFile({ text, editedAt, at }: Order, before: Order): void {
    const takenAt = this.#taken.get(keyOf({ text, editedAt }));
    const heldBefore = this.#orders.some((each) => each.text === text && each.at >= editedAt);
    if (before.editedAt < editedAt || (takenAt === undefined && !heldBefore)) return;
    const whose = before.speaker === 'a person' ? 'what a person said' : 'a newer file';
    this.accuse(
      `a file that was written ${at - editedAt} ms before beat ${whose} ${at - before.at} ms before`,
    );
  }

  /** Judges the end of the history, after a long calm time. */
  judgeEnd(): void {
    const last = this.#orders.at(-1);
    const file = this.#lastEdit;
    if (!file || !last || file.text === 'mode: on\n') return;
    const person = this.#orders.findLast(({ speaker: by }) => by === 'a person');
    const takenAt = this.#taken.get(keyOf(file));
    if (takenAt === undefined) {
      this.accuse('the file was never taken');
      return;
    }
    this.tried['orders that stand at the end'] += 1;
    // A user's change made while the file waited to be applied may count as before or after the file.
    if (
      person &&
      person.at > takenAt &&
      last !== person &&
      last.speaker === 'the service' &&
      last.at > person.at
    )
      this.accuse('what a person said last does not stand');
    // A file with a text that was in force before changes nothing.
    const isNew = !this.#orders.some(({ text, at }) => text === file.text && at < file.editedAt);
    const isLast = person === undefined || person.at < file.editedAt;
    if (isLast && isNew && last.text !== file.text) this.accuse('the newest file does not hold');
    if (takenAt - file.editedAt > TAKEN_MS)
      this.accuse(`the newest file was taken after ${takenAt - file.editedAt} ms`);
  }
}

const keyOf = ({ text, editedAt }: Shown): string => `${editedAt} ${text}`;
