import { type EpochMs, type NodeRef, nodeKey } from '#shared/eviction/identity.ts';
import { encodeDue } from '#shared/queues/due-message.ts';
import { MAX_DELAY_SECONDS } from '#shared/queues/limits.ts';
import type { Timers } from '#shared/timers/timers.ts';
import type { Surroundings } from './process.ts';
import type { SimulatedQueue } from './simulated-queue.ts';

/** A schedule is exact to the minute and therefore aimed two minutes early. */
const SCHEDULE_LEAD_MS = 120_000;
const SCHEDULE_LATE_MS = 60_000;

/** Timers as those on AWS: delayed messages, and schedules that come early for what is further away. */
export class SimulatedTimers implements Timers {
  readonly #surroundings: Surroundings;
  readonly #dueQueue: SimulatedQueue;
  readonly #schedules = new Set<string>();

  constructor(surroundings: Surroundings, dueQueue: SimulatedQueue) {
    this.#surroundings = surroundings;
    this.#dueQueue = dueQueue;
  }

  async arm(ref: NodeRef, fireAts: readonly EpochMs[]): Promise<void> {
    const { clock, random } = this.#surroundings;
    for (const at of fireAts) {
      const delaySeconds = Math.max(0, Math.ceil((at - clock.now()) / 1000));
      if (delaySeconds <= MAX_DELAY_SECONDS) {
        this.#dueQueue.accept([{ body: encodeDue({ ...ref, at }), delaySeconds }]);
        continue;
      }
      const name = `${nodeKey(ref)}#${at}`;
      if (this.#schedules.has(name)) continue;
      this.#schedules.add(name);
      clock.setAlarm(at - SCHEDULE_LEAD_MS + random.between(0, SCHEDULE_LATE_MS), () => {
        this.#schedules.delete(name);
        this.#dueQueue.accept([{ body: encodeDue({ ...ref, at }) }]);
      });
    }
  }
}
