import * as z from 'zod';

/*
 * The environment variables of what is deployed, by what they give access to. Whoever is granted that access is given
 * exactly these.
 */

const text = z.string().min(1, 'is empty');

/** The table: store, leases and cluster registry. */
export const tableVariables = { TABLE_NAME: text };

/** The queues the relay sends deltas to. */
export const deltaQueueVariables = { NODE_DELTAS_URL: z.url(), POD_DELTAS_URL: z.url() };

/** The queue a function's messages come from. */
export const sourceVariables = { SOURCE_QUEUE_URL: z.url() };

/** Where a function sets aside what nobody can read. */
export const deadLetterVariables = { DEAD_LETTER_QUEUE_URL: z.url() };

/** `evictions-due`. */
export const dueQueueVariables = { EVICTIONS_DUE_URL: z.url() };

/** What arming timers takes besides `evictions-due` itself. */
export const timerVariables = {
  EVICTIONS_DUE_ARN: text,
  SCHEDULE_GROUP_NAME: text,
  SCHEDULE_ROLE_ARN: text,
};

/** How tolerations are matched. */
export const matchingVariables = {
  COMPARISON_OPERATORS: z
    .enum(['true', 'false'], 'must be true or false')
    .transform((value) => value === 'true'),
};

/** Under which namespace CloudWatch shows the metrics. */
export const metricVariables = { METRIC_NAMESPACE: text };

/** The values for a group of variables; tells the compiler of any that is forgotten. */
export type ValuesOf<Variables> = { readonly [Name in keyof Variables]: string };
