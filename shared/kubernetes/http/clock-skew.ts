import type { SkewRange } from '#shared/eviction/skew.ts';
import type { Clock } from '#shared/time/clock.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';

/** The evidence of one response. */
export interface DatedAnswer {
  /** When the request was sent and its response received, by our clock. */
  readonly sentAt: EpochMs;
  readonly receivedAt: EpochMs;
  /** The response's `Date`, truncated to the second: the server's clock at some time between the two. */
  readonly date: EpochMs;
}

/** Maximum loss by truncation to the second. */
const DATE_GRAIN_MS = 1000;
/** How much evidence widens per millisecond of its age. Clocks drift apart by at most a tenth of this. */
const BLUR = 1e-3;
/** Maximum width of a range for a single figure, which is then off by at most half of this. */
const VAGUEST_MS = 1000;
/** How long a response counts: another API server, or a clock that was set, may have dated later ones. */
export const KEPT_MS = 10 * 60_000;
/** Maximum number of clocks that are distinguished: a server that sends arbitrary dates must not fill the memory. */
const MAX_CLOCKS = 8;

/** Evidence about one clock: how far it is ahead of our stopwatch, so that the evidence stays valid when our clock is set. */
interface ClockEvidence {
  readonly leastMs: number;
  readonly mostMs: number;
  /** When the last of these responses came, by the stopwatch. */
  readonly asOf: EpochMs;
}

/**
 * How far other clocks are ahead, from dates of responses. Each allows a range of a second, or of its duration if
 * longer; a few, at different parts of a second, leave a small one. Contradictions come from several API servers, or a
 * clock that was set: all count for ten minutes.
 */
export class ClockSkew {
  /** The clock that responded last comes first. */
  #clocks: readonly ClockEvidence[] = [];
  readonly #clock: Pick<Clock, 'stopwatch'>;

  /** `clock`: ours, whose stopwatch is used; without a stopwatch, our clock counts as never set. */
  constructor(clock: Pick<Clock, 'stopwatch'> = {}) {
    this.#clock = clock;
  }

  receive({ sentAt, receivedAt, date }: DatedAnswer): void {
    // Our own clock was set during the call.
    if (receivedAt < sentAt) return;
    const receivedMs = this.#stopwatchMs(receivedAt);
    const sentMs = receivedMs - (receivedAt - sentAt);
    const received = { leastMs: date - receivedMs, mostMs: date + DATE_GRAIN_MS - sentMs };
    const clocks = this.#clocksAt(receivedMs);
    const found = clocks.find(
      ({ leastMs, mostMs }) => leastMs <= received.mostMs && received.leastMs <= mostMs,
    );
    const narrowed = {
      leastMs: Math.max(found?.leastMs ?? -Infinity, received.leastMs),
      mostMs: Math.min(found?.mostMs ?? Infinity, received.mostMs),
      asOf: receivedMs,
    };
    // Earlier ranges widen only once, from their own time on.
    this.#clocks = merged([
      narrowed,
      ...this.#kept(receivedMs).filter((_, index) => clocks[index] !== found),
    ]);
  }

  /** Milliseconds that the last clock is ahead, within half a second; `undefined`: not known that well. */
  at(now: EpochMs): number | undefined {
    const [last] = this.rangesAt(now);
    if (!last || last.mostMs - last.leastMs > VAGUEST_MS) return undefined;
    return Math.round((last.leastMs + last.mostMs) / 2);
  }

  /** Milliseconds that the last clock is ahead, at least; `undefined`: no response had a date. */
  leastAt(now: EpochMs): number | undefined {
    return this.rangesAt(now)[0]?.leastMs;
  }

  /** Returns how far each clock that responded in the last ten minutes is ahead; the last one first. */
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

  #kept(nowMs: number): readonly ClockEvidence[] {
    return this.#clocks.filter(({ asOf }) => Math.abs(nowMs - asOf) <= KEPT_MS);
  }

  /** Returns the kept clocks with their ranges widened for a stopwatch time. */
  #clocksAt(nowMs: number): readonly ClockEvidence[] {
    return this.#kept(nowMs).map(({ leastMs, mostMs, asOf }) => {
      const blurMs = Math.abs(nowMs - asOf) * BLUR;
      return { leastMs: leastMs - blurMs, mostMs: mostMs + blurMs, asOf };
    });
  }
}

/** If there are too many clocks, the two with the oldest evidence become one, with a range that covers both. */
function merged(clocks: readonly ClockEvidence[]): readonly ClockEvidence[] {
  const [older, oldest] = clocks.slice(MAX_CLOCKS - 1);
  if (!older || !oldest) return clocks;
  const both = {
    leastMs: Math.min(older.leastMs, oldest.leastMs),
    mostMs: Math.max(older.mostMs, oldest.mostMs),
    asOf: older.asOf,
  };
  return [...clocks.slice(0, MAX_CLOCKS - 1), both];
}
