import type { Clock } from '#shared/time/clock.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';

type Speaker = 'a person' | 'the service';

/** Another policy than before holds from then on. */
interface Order {
  readonly at: EpochMs;
  readonly by: Speaker;
  readonly text: string;
  /** With `the service`: when the file was written that says so. */
  readonly editedAt: EpochMs;
}

/** A file as a replica sees it. */
interface Shown {
  readonly text: string;
  readonly editedAt: EpochMs;
}

/** A file is taken by then: it is seen late, somebody leads late, and what fails is tried again. */
const TAKEN_MS = 7 * 60_000;

/**
 * Holds a policy file against what people say: the newest word counts. A file that was taken once is as old as it was written,
 * however often a process begins with it.
 */
export class PolicyFileJudge {
  readonly faults: string[] = [];
  readonly tried = { 'orders of people': 0, 'files taken': 0, 'orders that stand at the end': 0 };
  readonly #clock: Clock;
  readonly #accused: (what: string) => void;
  readonly #orders: Order[] = [];
  readonly #shown = new Map<string, Shown>();
  /** When each file, as it was written at a moment, was taken first. */
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

  /** Somebody wrote the file. */
  edited(text: string): void {
    this.#lastEdit = { text, editedAt: this.#clock.now() };
  }

  /** A replica gets to see what was written last. */
  shows(replica: string): Shown {
    if (!this.#lastEdit) throw new Error('nobody wrote the file');
    this.#shown.set(replica, this.#lastEdit);
    return this.#lastEdit;
  }

  /** What a replica sees now; `undefined`: nothing yet. */
  shownTo(replica: string): Shown | undefined {
    return this.#shown.get(replica);
  }

  /** A process is done with the file as it saw it. */
  taken(shown: Shown | undefined): void {
    if (!shown || this.#taken.has(keyOf(shown))) return;
    this.tried['files taken'] += 1;
    this.#taken.set(keyOf(shown), this.#clock.now());
  }

  /** A policy holds; returns whether it is another one than before. */
  says(text: string, by: Speaker): boolean {
    const before = this.#orders.at(-1);
    if (before?.text === text) return false;
    const now = this.#clock.now();
    const files = [...this.#shown.values()].filter((each) => each.text === text);
    const editedAt = by === 'a person' ? now : Math.max(0, ...files.map((each) => each.editedAt));
    const order: Order = { at: now, by, text, editedAt };
    if (by === 'a person') this.tried['orders of people'] += 1;
    else if (before) this.#judgeFile(order, before);
    this.#orders.push(order);
    return true;
  }

  /** A file that was taken, or held before, is older than what was said since. */
  #judgeFile({ text, editedAt, at }: Order, before: Order): void {
    const takenAt = this.#taken.get(keyOf({ text, editedAt }));
    const heldBefore = this.#orders.some((each) => each.text === text && each.at >= editedAt);
    if (before.editedAt < editedAt || (takenAt === undefined && !heldBefore)) return;
    const whose = before.by === 'a person' ? 'what a person said' : 'a newer file';
    this.accuse(
      `a file that was written ${at - editedAt} ms before beat ${whose} ${at - before.at} ms before`,
    );
  }

  /** All is over, and has long been calm. */
  judgeEnd(): void {
    const last = this.#orders.at(-1);
    const file = this.#lastEdit;
    if (!file || !last || file.text === 'mode: on\n') return;
    const person = this.#orders.findLast(({ by }) => by === 'a person');
    const takenAt = this.#taken.get(keyOf(file));
    if (takenAt === undefined) {
      this.accuse('the file was never taken');
      return;
    }
    this.tried['orders that stand at the end'] += 1;
    // Who spoke while a file waited to be taken may have come before it or after.
    if (person && person.at > takenAt && last !== person && last.by === 'the service' && last.at > person.at)
      this.accuse('what a person said last does not stand');
    // What it held before, too, is no news.
    const isNew = !this.#orders.some(({ text, at }) => text === file.text && at < file.editedAt);
    const isLast = person === undefined || person.at < file.editedAt;
    if (isLast && isNew && last.text !== file.text) this.accuse('the newest file does not hold');
    if (takenAt - file.editedAt > TAKEN_MS)
      this.accuse(`the newest file was taken after ${takenAt - file.editedAt} ms`);
  }
}

const keyOf = ({ text, editedAt }: Shown): string => `${editedAt} ${text}`;
