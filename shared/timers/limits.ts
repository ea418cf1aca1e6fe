/*
 * Limits of Amazon EventBridge Scheduler. Source: EventBridge Scheduler User Guide, "Schedule types", and the API
 * reference of CreateSchedule. https://docs.aws.amazon.com/scheduler/latest/UserGuide/schedule-types.html
 */

/** A schedule invokes its target up to this many seconds after its time. */
export const SCHEDULE_PRECISION_SECONDS = 60;

/** Characters of a schedule's name, of `[0-9a-zA-Z-_.]`. */
export const MAX_SCHEDULE_NAME_CHARACTERS = 64;

/** Epoch ms of the last moment `at(yyyy-mm-ddThh:mm:ss)` can name. (A JavaScript date ends at 8.64e15 ms.) */
export const LAST_SCHEDULABLE_AT = Date.UTC(9999, 11, 31, 23, 59, 59);
