import { ConflictException, type CreateScheduleCommandInput } from '@aws-sdk/client-scheduler';
import { SCHEDULE_PRECISION_SECONDS } from '#shared/aws/aws-timers.ts';
import { parseDueMessage } from '#shared/aws/due-message.ts';
import type { Surroundings } from './process.ts';
import type { SimulatedQueue } from './simulated-queue.ts';

/**
 * EventBridge Scheduler: one-time schedules with unique names. They send to `evictions-due` up to a minute late and are then
 * deleted. Sometimes the message is lost.
 */
export class SimulatedScheduler {
  readonly #surroundings: Surroundings;
  readonly #dueQueue: SimulatedQueue;
  readonly #names = new Set<string>();

  constructor(surroundings: Surroundings, dueQueue: SimulatedQueue) {
    this.#surroundings = surroundings;
    this.#dueQueue = dueQueue;
  }

  create({ Name = '', ScheduleExpression = '', Target }: CreateScheduleCommandInput): object {
    const { clock, random, weather, disturbances } = this.#surroundings;
    if (this.#names.has(Name))
      throw new ConflictException({ Message: 'it exists', message: 'it exists', $metadata: {} });
    const time = /^at\((.+)\)$/.exec(ScheduleExpression)?.[1];
    const body = Target?.Input;
    if (time === undefined || body === undefined) throw new Error(`no schedule: ${ScheduleExpression}`);
    this.#names.add(Name);
    const at = Date.parse(`${time}Z`);
    clock.setAlarm(at + random.between(0, SCHEDULE_PRECISION_SECONDS * 1000), () => {
      this.#names.delete(Name);
      if (!weather.dropped()) {
        this.#dueQueue.accept([{ body }]);
        return;
      }
      const { cluster, at: due } = { at, ...parseDueMessage(body) };
      disturbances.note('timer', cluster, clock.now(), Math.max(due, clock.now()));
    });
    return {};
  }
}
