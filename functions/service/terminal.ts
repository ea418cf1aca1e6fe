import { stripVTControlCharacters } from 'node:util';
import { jsonLog, type Log } from '#shared/telemetry/log.ts';
import { textLog } from '#shared/telemetry/text-log.ts';
import { shownLines } from '#shared/text/escape-for-display.ts';
import type { Clock } from '#shared/time/clock.ts';

/** Format of the log: text for people, or JSON lines as the functions write. */
export const LOG_FORMATS = ['text', 'json'] as const;

export type LogFormat = (typeof LOG_FORMATS)[number];

/** Output of the process. */
export interface Terminal {
  readonly log: Log;
  /** Prints a line for the user who started the process. */
  print(line: string): void;
  /** True if `print` prints to a terminal, where secrets may be shown. Piped output may end up in a log. */
  readonly isToTerminal: boolean;
}

/** With `json`, standard output contains only the log, so `print` prints to standard error. */
export function openTerminal(format: LogFormat, clock: Clock): Terminal {
  const stream = format === 'json' ? process.stderr : process.stdout;
  const print = (line: string): void => printLine(stream, line);
  return { log: format === 'json' ? jsonLog() : textLog(clock, print), print, isToTerminal: stream.isTTY };
}

/** Prints a line. Colors are kept only on terminals, and other control characters never. */
function printLine(stream: NodeJS.WriteStream, line: string): void {
  const shown = shownLines(line);
  stream.write(`${stream.isTTY ? shown : stripVTControlCharacters(shown)}\n`);
}
