import { AsyncLocalStorage } from 'node:async_hooks';
import type { FieldsOf, LogEvent, LogLine } from './log-events.ts';

/** Fields of any log line, by the names operators filter on: cluster, node, namespace, pod, uid, error. */
export type LogFields = Readonly<Record<string, unknown>>;

export type Severity = 'info' | 'warn' | 'error';

/** Structured log: takes the events of `LogEvents`, each with the fields it has there. */
export type Log = {
  readonly [S in Severity]: <Event extends LogEvent>(event: Event, ...fields: FieldsOf<Event>) => void;
};

export function logTo(write: (severity: Severity, line: LogLine) => void): Log {
  const at =
    (severity: Severity) =>
    <Event extends LogEvent>(event: Event, ...[fields]: FieldsOf<Event> | []) =>
      // `FieldsOf` gives each event its own fields, but the compiler doesn't see that for an event that isn't known
      // yet.
      write(severity, { event, fields: fields ?? {} } as LogLine);
  return { info: at('info'), warn: at('warn'), error: at('error') };
}

const context = new AsyncLocalStorage<LogFields>();

/** Adds these fields to all lines that are logged from here on in this flow of work. */
export function enterLogContext(fields: LogFields): void {
  context.enterWith({ ...context.getStore(), ...fields });
}

/**
 * Runs `work`, whose lines have these fields, and no others: a message's ID identifies its request, and each byte of a
 * line costs money with each eviction.
 */
export function inLogContext<T>(fields: LogFields, work: () => T): T {
  return context.run(fields, work);
}

/** Returns a log that writes JSON lines to standard output, or to `destination`. Errors are written as their message, never whole. */
export function jsonLog(destination: { write(line: string): unknown } = process.stdout): Log {
  return logTo((severity, { event, fields }) => {
    const time = new Date().toISOString();
    const line = { level: severity, time, ...context.getStore(), ...readable(fields), event };
    destination.write(`${JSON.stringify(line)}\n`);
  });
}

/** An error's stack or cause may carry headers and tokens, so only its message is logged. Anything may have been thrown. */
function readable(fields: LogFields): LogFields {
  if (fields['error'] === undefined) return fields;
  const { error } = fields;
  return { ...fields, error: error instanceof Error ? error.message : String(error) };
}
