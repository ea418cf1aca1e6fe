import { AsyncLocalStorage } from 'node:async_hooks';
import { type DestinationStream, pino } from 'pino';

/** Fields of a log line, by the names operators filter on: cluster, node, namespace, pod, uid, reason. */
export type LogFields = Readonly<Record<string, unknown>>;

/** Structured log: one line per change of state, named `room.event` (for example `eviction.scheduled`). */
export interface Log {
  debug(event: string, fields?: LogFields): void;
  info(event: string, fields?: LogFields): void;
  warn(event: string, fields?: LogFields): void;
  error(event: string, fields?: LogFields): void;
}

/** Fields of whatever the work belongs to, on each of its lines. */
const context = new AsyncLocalStorage<LogFields>();

/** Everything that is logged from here on in this flow of work carries these fields too. */
export function enterLogContext(fields: LogFields): void {
  context.enterWith({ ...context.getStore(), ...fields });
}

/** What `work` logs carries these fields too. */
export function inLogContext<T>(fields: LogFields, work: () => T): T {
  return context.run({ ...context.getStore(), ...fields }, work);
}

/**
 * JSON lines to standard output, or to `destination`. Errors are written as their message, never whole. Not to the
 * descriptor, as pino does by itself: what runs functions in place of Lambda speaks to them there.
 */
export function jsonLog(level = 'info', destination: DestinationStream = process.stdout): Log {
  const logger = pino(
    {
      level,
      base: null,
      timestamp: pino.stdTimeFunctions.isoTime,
      messageKey: 'event',
      formatters: { level: (label) => ({ level: label }) },
      mixin: () => context.getStore() ?? {},
    },
    destination,
  );
  const write =
    (severity: 'debug' | 'info' | 'warn' | 'error') =>
    (event: string, fields: LogFields = {}) =>
      logger[severity](readable(fields), event);
  return { debug: write('debug'), info: write('info'), warn: write('warn'), error: write('error') };
}

/** An error's stack or cause may carry headers and tokens, so only its message is logged. */
function readable(fields: LogFields): LogFields {
  return Object.fromEntries(
    Object.entries(fields).map(([name, value]) => [name, value instanceof Error ? value.message : value]),
  );
}
