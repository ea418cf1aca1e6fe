import { type Log, type LogFields, logTo, type Severity } from '#shared/telemetry/log.ts';
import type { LogEvent } from '#shared/telemetry/log-events.ts';

export interface RecordedLine {
  readonly level: Severity;
  readonly event: LogEvent;
  readonly fields: LogFields;
}

export type RecordingLog = Log & { readonly lines: readonly RecordedLine[] };

/** Returns a log that keeps its lines for assertions. */
export function recordingLog(): RecordingLog {
  const lines: RecordedLine[] = [];
  return { lines, ...logTo((level, { event, fields }) => lines.push({ level, event, fields })) };
}
