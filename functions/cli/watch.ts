import { pause } from '#shared/time/pause.ts';

const WATCH_MS = 2_000;
const CLEAR_SCREEN = '\u001b[H\u001b[2J\u001b[3J';

/** Shows the result of `show`, and again whenever it changes. Resolves when the user stops it. */
export type Watch = (show: () => Promise<string>) => Promise<void>;

/** Replaces the previous output on a terminal. Otherwise appends to it. */
export function watchOn(
  stream: Pick<NodeJS.WriteStream, 'isTTY' | 'write'>,
  signal: AbortSignal,
  everyMs = WATCH_MS,
): Watch {
  return async (show) => {
    for (let shown: string | undefined; !signal.aborted; ) {
      const text = await show();
      if (text !== shown) stream.write(stream.isTTY ? `${CLEAR_SCREEN}${text}` : text);
      shown = text;
      await pause(everyMs, signal);
    }
  };
}
