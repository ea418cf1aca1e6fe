import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';

/** The prompt at which the operator types. */
export interface Prompt {
  /** Passes each further line to `handle`. */
  onLine(handle: (line: string) => void): void;
  close(): void;
}

/**
 * Reads lines from `input`. `quit` is called when a terminal ends its input (Ctrl-D). The end of any other
 * input is ignored: a service manager provides no input at all.
 */
export function listenForLines(input: Readable & { readonly isTTY?: boolean }, quit: () => void): Prompt {
  const lines = createInterface({ input });
  lines.once('close', () => {
    if (input.isTTY) quit();
  });
  return {
    onLine: (handle) => void lines.on('line', handle),
    close: () => lines.close(),
  };
}
