import * as z from 'zod';
import type { EpochMs } from '#shared/eviction/identity.ts';
import { BRAKE_KINDS } from '#shared/explain/brake-words.ts';
import type { EvictionRef, LogLine } from './log-events.ts';

/** RFC 3339, in UTC. */
const time = z.string();

/** What holds a pod; who only observes holds none. */
const HOLDING = BRAKE_KINDS.filter((kind) => kind !== 'observe');

/** What others are told of an eviction: the detail of an event on the event bus. Fields may be added to version 1. */
export const noticeSchema = z
  .object({
    version: z.literal(1),
    event: z
      .enum([
        'scheduled',
        'moved',
        'blocked',
        'held',
        'would-have',
        'cancelled',
        'done',
        'gone',
        'gave-up',
        'unregistered',
      ])
      .describe('what became of the eviction'),
    at: time.meta({ format: 'date-time', description: 'when it was told' }),
    cluster: z.string(),
    node: z.string(),
    namespace: z.string(),
    pod: z.string(),
    uid: z.string(),
    delta: z
      .string()
      .optional()
      .describe('the delta that told of it last: the id by which the logs are followed'),
    dueAt: time.meta({ format: 'date-time', description: 'when the pod is, or was, to go' }).optional(),
    because: z
      .array(z.string())
      .optional()
      .describe('the taints that set that moment, as kubectl prints them'),
    lateMs: z.int().nonnegative().optional().describe('with done: how long after its moment it was evicted'),
    heldBy: z
      .string()
      .optional()
      .describe(`with held: ${HOLDING.join(', ')}`),
    reason: z.string().optional().describe('with blocked, cancelled, gave-up and unregistered: why'),
  })
  .meta({ title: 'Taintward Eviction' });

export type Notice = z.output<typeof noticeSchema>;

/** What a line of the log tells that others may want to know; `undefined`: nothing. */
export function noticeOf({ event, fields }: LogLine, now: EpochMs): Notice | undefined {
  switch (event) {
    case 'eviction.scheduled':
      return { ...about('scheduled', fields, now), ...due(fields) };
    case 'eviction.rescheduled':
      return { ...about('moved', fields, now), ...due(fields) };
    case 'eviction.blocked':
      return { ...about('blocked', fields, now), ...due(fields), reason: textOf(fields.reason) };
    case 'eviction.held': {
      const { by } = fields;
      return { ...about('held', fields, now), ...due(fields), ...(by === undefined ? {} : { heldBy: by }) };
    }
    case 'eviction.would-evict':
      return about('would-have', fields, now);
    case 'eviction.canceled':
      return { ...about('cancelled', fields, now), ...due(fields), reason: textOf(fields.reason) };
    case 'pod.evicted':
      return { ...about('done', fields, now), lateMs: fields.lateMs };
    case 'pod.already-gone':
      return about('gone', fields, now);
    case 'eviction.failed':
      return { ...about('gave-up', fields, now), ...due(fields), reason: textOf(fields.reason) };
    case 'eviction.unregistered':
      return { ...about('unregistered', fields, now), ...due(fields), reason: textOf(fields.reason) };
    default:
      return undefined;
  }
}

function about(
  event: Notice['event'],
  { cluster, node, namespace, pod, uid, delta }: EvictionRef,
  now: EpochMs,
): Notice {
  return { version: 1, event, at: timeText(now), cluster, node, namespace, pod, uid, delta };
}

const due = ({ fireAt, because }: { readonly fireAt: EpochMs; readonly because: readonly string[] }) => ({
  dueAt: timeText(fireAt),
  because: [...because],
});

const timeText = (at: EpochMs): string => new Date(at).toISOString();

const textOf = (reason: unknown): string => (reason instanceof Error ? reason.message : String(reason ?? ''));
