import type { Log, LogFields } from '#shared/telemetry/log.ts';

export interface RecordedLine {
  readonly level: keyof Log;
  readonly event: string;
  readonly fields: LogFields;
}

export interface RecordingLog extends Log {
  readonly lines: readonly RecordedLine[];
}

/** A log that keeps its lines for the test to look at. */
export function recordingLog(): RecordingLog {
  const lines: RecordedLine[] = [];
  const at =
    (level: keyof Log) =>
    (event: string, fields: LogFields = {}) => {
      lines.push({ level, event, fields });
    };
  return { lines, debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') };
}
