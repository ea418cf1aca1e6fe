import type { EpochMs } from '#shared/eviction/identity.ts';

/** One answer's evidence. */
export interface DatedAnswer {
  /** When the request was sent and its answer received, by our clock. */
  readonly sentAt: EpochMs;
  readonly receivedAt: EpochMs;
  /** The answer's `Date`, cut to the second: the server's clock at some moment between the two. */
  readonly date: EpochMs;
}

/** What cutting to the second takes off at most. */
const DATE_GRAIN_MS = 1000;
/**
 * By so much per millisecond old evidence gets vaguer. Clocks drift apart by a tenth of that at most, and after some
 * quiet minutes nothing is left that a clock which was set meanwhile could contradict.
 */
const BLUR = 1e-3;
/** Of a vaguer figure nothing is said: it is off by half of this at most. */
const VAGUEST_MS = 1000;

/**
 * How far another clock is ahead of ours, from what answers say. Each allows a range of about a second; since they
 * begin at different parts of a second, few of them leave only a small one.
 */
export class ClockSkew {
  /** The range in which the skew lies, as of `#asOf`; none while nothing is known. */
  #range: { readonly least: number; readonly most: number } | undefined;
  #asOf: EpochMs = 0;

  hear({ sentAt, receivedAt, date }: DatedAnswer): void {
    // Our own clock was set on the way.
    if (receivedAt < sentAt) return;
    const heard = { least: date - receivedAt, most: date + DATE_GRAIN_MS - sentAt };
    const known = this.#rangeAt(receivedAt);
    const both = known && {
      least: Math.max(known.least, heard.least),
      most: Math.min(known.most, heard.most),
    };
    // What contradicts all that was known before tells of a clock that was set.
    this.#range = both && both.least <= both.most ? both : heard;
    this.#asOf = receivedAt;
  }

  /** Milliseconds, positive where the other clock is ahead, within half a second; `undefined`: not known that well. */
  at(now: EpochMs): number | undefined {
    const range = this.#rangeAt(now);
    if (!range || range.most - range.least > VAGUEST_MS) return undefined;
    return Math.round((range.least + range.most) / 2);
  }

  /** Milliseconds by which the other clock is ahead at the least; `undefined`: no answer told. */
  leastAt(now: EpochMs): number | undefined {
    return this.#rangeAt(now)?.least;
  }

  #rangeAt(now: EpochMs) {
    const blurMs = Math.abs(now - this.#asOf) * BLUR;
    return this.#range && { least: this.#range.least - blurMs, most: this.#range.most + blurMs };
  }
}
