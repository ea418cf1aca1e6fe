import type { Clock } from '#shared/time/clock.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';

interface Alarm {
  readonly at: EpochMs;
  readonly order: number;
  readonly ring: () => Promise<void>;
}

/** A clock that moves only by calls, and fires the alarms that were set on it in order while it moves. */
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

  /** Fires at `at`, or at the next advance when `at` is past. */
  setAlarm(at: EpochMs, ring: () => Promise<void>): void {
    this.#alarms.push({ at, order: this.#order++, ring });
  }

  clearAlarms(): void {
    this.#alarms = [];
  }

  /** Moves to `to`. Every alarm that is due until then fires at its own time, including alarms that it sets. */
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
