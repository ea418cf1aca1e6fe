import { stripVTControlCharacters } from 'node:util';
import { jsonLog, type Log } from '#shared/telemetry/log.ts';
import { textLog } from '#shared/telemetry/text-log.ts';
import { shownLines } from '#shared/text/escape-for-display.ts';
import type { Clock } from '#shared/time/clock.ts';

/** How the log is written: for people, or as the JSON lines that the functions write. */
export const LOG_FORMATS = ['text', 'json'] as const;

export type LogFormat = (typeof LOG_FORMATS)[number];

/** How the process speaks. */
export interface Terminal {
  readonly log: Log;
  /** To whoever has started it. */
  say(line: string): void;
  /** Whether what is said is read on a terminal, and so can be a secret: what is piped may end in a log. */
  readonly isToTerminal: boolean;
}

/** With `json` nothing but the log goes to standard output: what is said goes to standard error. */
export function openTerminal(format: LogFormat, clock: Clock): Terminal {
  const stream = format === 'json' ? process.stderr : process.stdout;
  const say = (line: string): void => printLine(stream, line);
  return { log: format === 'json' ? jsonLog() : textLog(clock, say), say, isToTerminal: stream.isTTY };
}

/** Colours are for terminals only, and other control characters for nobody. */
function printLine(stream: NodeJS.WriteStream, line: string): void {
  const shown = shownLines(line);
  stream.write(`${stream.isTTY ? shown : stripVTControlCharacters(shown)}\n`);
}
