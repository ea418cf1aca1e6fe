import { AsyncLocalStorage } from 'node:async_hooks';
import { type DestinationStream, pino } from 'pino';
import type { FieldsOf, LogEvent, LogLine } from './log-events.ts';

/** Fields of any log line, by the names operators filter on: cluster, node, namespace, pod, uid, error. */
export type LogFields = Readonly<Record<string, unknown>>;

export type Severity = 'debug' | 'info' | 'warn' | 'error';

/** Structured log: takes the events of `LogEvents`, each with the fields it has there. */
export type Log = {
  readonly [S in Severity]: <Event extends LogEvent>(event: Event, ...told: FieldsOf<Event>) => void;
};

/** A log each line of which goes to `write`. */
export function logTo(write: (severity: Severity, line: LogLine) => void): Log {
  const at =
    (severity: Severity) =>
    <Event extends LogEvent>(event: Event, ...[fields]: FieldsOf<Event> | []) =>
      // `Told` gives each event its own fields, which the compiler does not see of a pair that is still open.
      write(severity, { event, fields: fields ?? {} } as LogLine);
  return { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') };
}

/** Fields of whatever the work belongs to, on each of its lines. */
const context = new AsyncLocalStorage<LogFields>();

/** Everything that is logged from here on in this flow of work carries these fields too. */
export function enterLogContext(fields: LogFields): void {
  context.enterWith({ ...context.getStore(), ...fields });
}

/**
 * What `work` logs carries these fields, and no others: a message's id tells its request, and each byte of a line is
 * paid for with each eviction.
 */
export function inLogContext<T>(fields: LogFields, work: () => T): T {
  return context.run(fields, work);
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
      // A copy, because pino writes the line's own fields into what it is given.
      mixin: () => ({ ...context.getStore() }),
    },
    destination,
  );
  return logTo((severity, { event, fields }) => logger[severity](readable(fields), event));
}

/** An error's stack or cause may carry headers and tokens, so only its message is logged. */
function readable(fields: LogFields): LogFields {
  return Object.fromEntries(
    Object.entries(fields).map(([name, value]) => [name, value instanceof Error ? value.message : value]),
  );
}
