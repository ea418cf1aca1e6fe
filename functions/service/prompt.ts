import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';

/** Where the operator types. */
export interface Prompt {
  /** Hands over each line that comes from now on. */
  onLine(handle: (line: string) => void): void;
  close(): void;
}

/**
 * Listens to the lines of `input`. `quit` is called when a terminal says that nothing more is coming (Ctrl-D). The end of
 * any other input says nothing: a service manager gives none at all.
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
