import type { EpochMs } from '#shared/eviction/identity.ts';
import type { SkewRange } from '#shared/eviction/skew.ts';

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
 * By so much per millisecond old evidence gets vaguer. Clocks drift apart by a tenth of that at most.
 */
const BLUR = 1e-3;
/** Of a vaguer figure nothing is said: it is off by half of this at most. */
const VAGUEST_MS = 1000;
/** An answer counts for so long, whatever later ones say: another API server, or a clock that was set, may have given those. */
const KEPT_MS = 10 * 60_000;
/** Clocks that are told apart. A server that names any time must not fill the memory. */
const MAX_CLOCKS = 8;

/** What answers say of one clock. */
interface Known {
  readonly leastMs: number;
  readonly mostMs: number;
  /** When the last of them came. */
  readonly asOf: EpochMs;
}

/**
 * How far other clocks are ahead of ours, from what answers say. Each answer allows a range of about a second, or of as long as it took;
 * since answers begin at different parts of a second, few of them leave only a small range. Answers that contradict each other are of
 * several API servers, or of a clock that was set: all count for ten minutes.
 */
export class ClockSkew {
  /** The last that answered comes first. */
  #clocks: readonly Known[] = [];

  hear({ sentAt, receivedAt, date }: DatedAnswer): void {
    // Our own clock was set on the way.
    if (receivedAt < sentAt) return;
    const heard = { leastMs: date - receivedAt, mostMs: date + DATE_GRAIN_MS - sentAt };
    const clocks = this.#clocksAt(receivedAt);
    const found = clocks.find(({ leastMs, mostMs }) => leastMs <= heard.mostMs && heard.leastMs <= mostMs);
    const narrowed = {
      leastMs: Math.max(found?.leastMs ?? -Infinity, heard.leastMs),
      mostMs: Math.min(found?.mostMs ?? Infinity, heard.mostMs),
      asOf: receivedAt,
    };
    // What was known before was known until now: it is blurred once only, from its own time on.
    this.#clocks = merged([
      narrowed,
      ...this.#kept(receivedAt).filter((_, index) => clocks[index] !== found),
    ]);
  }

  /** Milliseconds by which the clock that answered last is ahead, within half a second; `undefined`: not known that well. */
  at(now: EpochMs): number | undefined {
    const [last] = this.#clocksAt(now);
    if (!last || last.mostMs - last.leastMs > VAGUEST_MS) return undefined;
    return Math.round((last.leastMs + last.mostMs) / 2);
  }

  /** Milliseconds by which the clock that answered last is ahead at the least; `undefined`: no answer told. */
  leastAt(now: EpochMs): number | undefined {
    return this.#clocksAt(now)[0]?.leastMs;
  }

  /** By how much each clock is ahead that answered in the last ten minutes; the last that answered comes first. */
  rangesAt(now: EpochMs): readonly SkewRange[] {
    return this.#clocksAt(now).map(({ leastMs, mostMs }) => ({ leastMs, mostMs }));
  }

  #kept(now: EpochMs): readonly Known[] {
    return this.#clocks.filter(({ asOf }) => Math.abs(now - asOf) <= KEPT_MS);
  }

  /** As what is kept is known at `now`. */
  #clocksAt(now: EpochMs): readonly Known[] {
    return this.#kept(now).map(({ leastMs, mostMs, asOf }) => {
      const blurMs = Math.abs(now - asOf) * BLUR;
      return { leastMs: leastMs - blurMs, mostMs: mostMs + blurMs, asOf };
    });
  }
}

/** As many clocks as are told apart; of more, the two that were heard of longest ago count as one, which may show any time between. */
function merged(clocks: readonly Known[]): readonly Known[] {
  const [older, oldest] = clocks.slice(MAX_CLOCKS - 1);
  if (!older || !oldest) return clocks;
  const both = {
    leastMs: Math.min(older.leastMs, oldest.leastMs),
    mostMs: Math.max(older.mostMs, oldest.mostMs),
    asOf: older.asOf,
  };
  return [...clocks.slice(0, MAX_CLOCKS - 1), both];
}
