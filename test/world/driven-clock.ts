import type { Clock } from '#shared/time/clock.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';

interface Alarm {
  readonly at: EpochMs;
  readonly order: number;
  readonly ring: () => Promise<void>;
}

/** A clock that moves only when told, and rings what was set on it, in order, on the way. */
export class DrivenClock implements Clock {
  #now: EpochMs;
  #order = 0;
  #alarms: Alarm[] = [];

  constructor(now: EpochMs) {
    this.#now = now;
  }

  now(): EpochMs {
    return this.#now;
  }

  /** Rings at `at`, or at the next advance when that is past. */
  setAlarm(at: EpochMs, ring: () => Promise<void>): void {
    this.#alarms.push({ at, order: this.#order++, ring });
  }

  clearAlarms(): void {
    this.#alarms = [];
  }

  /** Moves to `to`; every alarm due until then rings at its own moment, and those it sets in turn. */
  async advanceTo(to: EpochMs): Promise<void> {
    for (;;) {
      const next = this.#alarms
        .filter(({ at }) => at <= to)
        .sort((a, b) => a.at - b.at || a.order - b.order)
        .at(0);
      if (!next) break;
      this.#alarms = this.#alarms.filter((alarm) => alarm !== next);
      this.#now = Math.max(this.#now, next.at);
      await next.ring();
    }
    this.#now = Math.max(this.#now, to);
  }
}
