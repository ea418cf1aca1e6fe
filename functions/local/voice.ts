import { stripVTControlCharacters } from 'node:util';
import { jsonLog, type Log } from '#shared/telemetry/log.ts';
import type { Clock } from '#shared/time/clock.ts';
import { narrator } from './narrator.ts';

/** How the log is written: for people, or as the JSON lines that the functions write. */
export const LOG_FORMATS = ['text', 'json'] as const;

export type LogFormat = (typeof LOG_FORMATS)[number];

/** How the process speaks. */
export interface Voice {
  readonly log: Log;
  /** To whoever has started it. */
  say(line: string): void;
}

/** With `json` nothing but the log goes to standard output: what is said goes to standard error. */
export function voice(format: LogFormat, clock: Clock): Voice {
  if (format === 'json') return { log: jsonLog(), say: (line) => printLine(process.stderr, line) };
  const say = (line: string): void => printLine(process.stdout, line);
  return { log: narrator(clock, say), say };
}

/** Colours are for terminals only. */
function printLine(stream: NodeJS.WriteStream, line: string): void {
  stream.write(`${stream.isTTY ? line : stripVTControlCharacters(line)}\n`);
}
