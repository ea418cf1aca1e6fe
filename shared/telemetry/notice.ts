import * as z from 'zod';
import { defined } from '#shared/defined.ts';
import { GATE_KINDS } from '#shared/explain/gate-text.ts';
import { errorMessage } from '#shared/text/error-message.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import type { EvictionFields, EvictionRef, LogLine } from './log-events.ts';

/** RFC 3339, in UTC. */
const time = z.string();

/** The types of rules that hold a pod; observe mode holds none. */
const HOLDING = GATE_KINDS.filter((kind) => kind !== 'observe');

/** The detail of an event on the event bus. Fields may be added to version 1. */
export const noticeSchema = z
  .object({
    version: z.literal(1),
    event: z
      .enum([
        'scheduled',
        'rescheduled',
        'blocked',
        'held',
        'would-evict',
        'canceled',
        'evicted',
        'already-gone',
        'failed',
        'unregistered',
      ])
      .describe('state of the eviction'),
    at: time.meta({ format: 'date-time', description: 'when Taintward sent the event' }),
    cluster: z.string(),
    node: z.string(),
    namespace: z.string(),
    pod: z.string(),
    uid: z.string(),
    delta: z
      .string()
      .optional()
      .describe('ID of the delta that changed the eviction last; the same ID is in the logs'),
    dueAt: time.meta({ format: 'date-time', description: 'deadline of the eviction' }).optional(),
    taints: z.array(z.string()).optional().describe('taints that cause the eviction, as kubectl prints them'),
    delayMs: z
      .int()
      .nonnegative()
      .optional()
      .describe('with evicted: time from the deadline to the eviction'),
    heldBy: z
      .string()
      .optional()
      .describe(`with held: ${HOLDING.join(', ')}`),
    reason: z.string().optional().describe('with canceled: taint-removed, tolerated-forever, or pod-gone'),
    error: z.string().optional().describe('with blocked, failed, and unregistered: error message'),
  })
  .meta({ title: 'Taintward Eviction' });

export type Notice = z.output<typeof noticeSchema>;

/** Returns the notification for a line of the log; `undefined`: none. */
export function noticeOf(line: LogLine, now: EpochMs): Notice | undefined {
  switch (line.event) {
    case 'eviction.would-evict':
    case 'pod.already-gone':
      return about(line, line.fields, now);
    case 'pod.evicted':
      return { ...about(line, line.fields, now), delayMs: line.fields.delayMs };
    case 'eviction.scheduled':
    case 'eviction.rescheduled':
      return { ...about(line, line.fields, now), ...due(line.fields) };
    case 'eviction.held':
      return {
        ...about(line, line.fields, now),
        ...due(line.fields),
        ...defined({ heldBy: line.fields.by }),
      };
    case 'eviction.canceled':
      return { ...about(line, line.fields, now), ...due(line.fields), reason: line.fields.reason ?? '' };
    case 'eviction.blocked':
    case 'eviction.failed':
    case 'eviction.unregistered': {
      const error = errorMessage(line.fields.error);
      return { ...about(line, line.fields, now), ...due(line.fields), error };
    }
    default:
      return undefined;
  }
}

/** The notification has the name of the log event, without the object. */
function about(
  { event }: { readonly event: `${'eviction' | 'pod'}.${Notice['event']}` },
  { cluster, node, namespace, pod, uid, delta }: EvictionRef,
  now: EpochMs,
): Notice {
  const [, name] = event.split('.') as ['eviction' | 'pod', Notice['event']];
  return { version: 1, event: name, at: timeText(now), cluster, node, namespace, pod, uid, delta };
}

const due = ({ dueAt, taints }: Pick<EvictionFields, 'dueAt' | 'taints'>) => ({
  dueAt: timeText(dueAt),
  taints: [...taints],
});

const timeText = (at: EpochMs): string => new Date(at).toISOString();
