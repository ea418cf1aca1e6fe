import { hash } from 'node:crypto';
import { ConflictException, CreateScheduleCommand, type SchedulerClient } from '@aws-sdk/client-scheduler';
import { type Timers, timerError } from '#shared/engine/timers.ts';
import { type ClusterName, type NodeRef, nodeKey } from '#shared/eviction/identity.ts';
import type { QueueSender } from '#shared/state/sender.ts';
import type { Clock } from '#shared/time/clock.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import type { Schedules } from './agent-names.ts';
import { dueGroupId, encodeDue } from './due-message.ts';
import { MAX_DELAY_SECONDS } from './limits.ts';

/*
 * Limits of Amazon EventBridge Scheduler. Source: EventBridge Scheduler User Guide, "Schedule types", and the API
 * reference of CreateSchedule. https://docs.aws.amazon.com/scheduler/latest/UserGuide/schedule-types.html
 */

/** A schedule invokes its target up to this many seconds after its time. */
export const SCHEDULE_PRECISION_SECONDS = 60;

/** Characters of a schedule's name, of `[0-9a-zA-Z-_.]`. */
export const MAX_SCHEDULE_NAME_CHARACTERS = 64;

/** Epoch ms of the last time that `at(yyyy-mm-ddThh:mm:ss)` can name. (A JavaScript date ends at 8.64e15 ms.) */
export const LAST_SCHEDULABLE_AT = Date.UTC(9999, 11, 31, 23, 59, 59);

export interface AwsTimersDeps {
  /** `evictions-due` of each message's cluster, for deadlines within a message's longest delay. */
  readonly dueQueue: QueueSender;
  readonly scheduler: SchedulerClient;
  /** Returns the schedules for later deadlines in a cluster. */
  readonly schedulesOf: (cluster: ClusterName) => Promise<Schedules>;
  readonly clock: Clock;
}

/** A schedule is exact to the minute only, so it fires this many seconds early; `evict` delays the message again. */
export const SCHEDULE_LEAD_SECONDS = 2 * SCHEDULE_PRECISION_SECONDS;

/**
 * Tries for an hour to reach `evictions-due`, not a day: a resync arms overdue evictions much sooner. Dropped
 * invocations are counted (`InvocationDroppedCount`), so that an alarm fires within the same hour.
 */
export const RETRY_POLICY = { MaximumEventAgeInSeconds: 3600, MaximumRetryAttempts: 185 };

/**
 * Up to 900 s ahead, a delayed message; later, a one-time schedule that sends it two minutes early and deletes itself.
 * Deadlines after the year 9999 are not armed: no schedule can name them.
 */
export class AwsTimers implements Timers {
  readonly #deps: AwsTimersDeps;

  constructor(deps: AwsTimersDeps) {
    this.#deps = deps;
  }

  async arm(ref: NodeRef, times: readonly EpochMs[]): Promise<void> {
    const now = this.#deps.clock.now();
    const delays = new Map<number, EpochMs>();
    const seconds = new Set<EpochMs>();
    for (const at of times) {
      const delaySeconds = Math.ceil(Math.max(0, at - now) / 1000);
      if (delaySeconds <= MAX_DELAY_SECONDS) {
        delays.set(delaySeconds, Math.max(at, delays.get(delaySeconds) ?? at));
      } else if (at <= LAST_SCHEDULABLE_AT) {
        seconds.add(Math.ceil(at / 1000) * 1000);
      }
    }
    const armed = await Promise.allSettled([
      this.#delay(ref, delays),
      ...[...seconds].map((at) => this.#schedule(ref, at)),
    ]);
    const failed = armed.find((result) => result.status === 'rejected');
    if (failed) throw timerError(ref, failed.reason);
  }

  async #delay(ref: NodeRef, delays: ReadonlyMap<number, EpochMs>): Promise<void> {
    if (delays.size === 0) return;
    const [failure] = await this.#deps.dueQueue.send(
      [...delays].map(([delaySeconds, at]) => ({
        body: encodeDue({ ...ref, at }),
        groupId: dueGroupId(ref.cluster),
        delaySeconds,
      })),
    );
    if (failure) throw new Error(`evictions-due rejected the message: ${failure.reason}`);
  }

  async #schedule(ref: NodeRef, at: EpochMs): Promise<void> {
    const { scheduler, schedulesOf } = this.#deps;
    const { groupName, roleArn, dueQueueArn } = await schedulesOf(ref.cluster);
    const time = new Date(at - SCHEDULE_LEAD_SECONDS * 1000)
      .toISOString()
      .slice(0, 'yyyy-mm-ddThh:mm:ss'.length);
    try {
      await scheduler.send(
        new CreateScheduleCommand({
          Name: scheduleName(ref, at),
          GroupName: groupName,
          ScheduleExpression: `at(${time})`,
          ScheduleExpressionTimezone: 'UTC',
          FlexibleTimeWindow: { Mode: 'OFF' },
          ActionAfterCompletion: 'DELETE',
          Target: {
            Arn: dueQueueArn,
            RoleArn: roleArn,
            Input: encodeDue({ ...ref, at }),
            RetryPolicy: RETRY_POLICY,
          },
        }),
      );
    } catch (error) {
      // The name is computed from node and time, so an existing schedule is this very timer.
      if (!(error instanceof ConflictException)) throw error;
    }
  }
}

/** Returns the name of the schedule for a node and a whole second: 64 characters that a name allows. */
export function scheduleName(ref: NodeRef, at: EpochMs): string {
  return hash('sha256', `${nodeKey(ref)}#${at / 1000}`);
}
