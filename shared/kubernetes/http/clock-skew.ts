import type { SkewRange } from '#shared/eviction/skew.ts';
import type { Clock } from '#shared/time/clock.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';

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
/** Most clocks that are distinguished: a server that sends arbitrary dates must not fill the memory. */
const MAX_CLOCKS = 8;

/** What answers say of one clock: by how much it is ahead of our stopwatch, so that it stays true when our clock is set. */
interface Known {
  readonly leastMs: number;
  readonly mostMs: number;
  /** When the last of them came, by the stopwatch. */
  readonly asOf: EpochMs;
}

/**
 * How far other clocks are ahead of ours, from what answers say. Each answer allows a range of about a second, or of as long as it took;
 * since answers begin at different parts of a second, few of them leave only a small range. Answers that contradict each other are of
 * several API servers, or of one whose clock was set: all count for ten minutes.
 */
export class ClockSkew {
  /** The last that answered comes first. */
  #clocks: readonly Known[] = [];
  readonly #clock: Pick<Clock, 'stopwatch'>;

  /** `clock`: ours, of which the stopwatch is read; without one, it is never set. */
  constructor(clock: Pick<Clock, 'stopwatch'> = {}) {
    this.#clock = clock;
  }

  hear({ sentAt, receivedAt, date }: DatedAnswer): void {
    // Our own clock was set on the way.
    if (receivedAt < sentAt) return;
    const receivedMs = this.#stopwatchMs(receivedAt);
    const sentMs = receivedMs - (receivedAt - sentAt);
    const heard = { leastMs: date - receivedMs, mostMs: date + DATE_GRAIN_MS - sentMs };
    const clocks = this.#clocksAt(receivedMs);
    const found = clocks.find(({ leastMs, mostMs }) => leastMs <= heard.mostMs && heard.leastMs <= mostMs);
    const narrowed = {
      leastMs: Math.max(found?.leastMs ?? -Infinity, heard.leastMs),
      mostMs: Math.min(found?.mostMs ?? Infinity, heard.mostMs),
      asOf: receivedMs,
    };
    // What was known before was known until now: it is blurred once only, from its own time on.
    this.#clocks = merged([
      narrowed,
      ...this.#kept(receivedMs).filter((_, index) => clocks[index] !== found),
    ]);
  }

  /** Milliseconds by which the clock that answered last is ahead, within half a second; `undefined`: not known that well. */
  at(now: EpochMs): number | undefined {
    const [last] = this.rangesAt(now);
    if (!last || last.mostMs - last.leastMs > VAGUEST_MS) return undefined;
    return Math.round((last.leastMs + last.mostMs) / 2);
  }

  /** Milliseconds by which the clock that answered last is ahead, at least; `undefined`: no response had a date. */
  leastAt(now: EpochMs): number | undefined {
    return this.rangesAt(now)[0]?.leastMs;
  }

  /** By how much each clock is ahead that answered in the last ten minutes; the last that answered comes first. */
  rangesAt(now: EpochMs): readonly SkewRange[] {
    const stopwatchMs = this.#stopwatchMs(now);
    const aheadMs = now - stopwatchMs;
    return this.#clocksAt(stopwatchMs).map(({ leastMs, mostMs }) => ({
      leastMs: leastMs - aheadMs,
      mostMs: mostMs - aheadMs,
    }));
  }

  #stopwatchMs(now: EpochMs): number {
    return this.#clock.stopwatch?.() ?? now;
  }

  #kept(nowMs: number): readonly Known[] {
    return this.#clocks.filter(({ asOf }) => Math.abs(nowMs - asOf) <= KEPT_MS);
  }

  /** As what is kept is known then, by the stopwatch. */
  #clocksAt(nowMs: number): readonly Known[] {
    return this.#kept(nowMs).map(({ leastMs, mostMs, asOf }) => {
      const blurMs = Math.abs(nowMs - asOf) * BLUR;
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
