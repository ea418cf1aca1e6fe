import { pause } from '#shared/time/pause.ts';

/** How often whoever watches is shown what is. */
const LOOK_MS = 2_000;
const CLEAR_SCREEN = '\u001b[H\u001b[2J\u001b[3J';

/** Shows what `look` finds, and again whenever that is something else; resolves when whoever watches has seen enough. */
export type Watch = (look: () => Promise<string>) => Promise<void>;

/** On a terminal in place of what was shown before, else below it. */
export function watchOn(
  stream: Pick<NodeJS.WriteStream, 'isTTY' | 'write'>,
  signal: AbortSignal,
  lookMs = LOOK_MS,
): Watch {
  return async (look) => {
    for (let shown: string | undefined; !signal.aborted; ) {
      const text = await look();
      if (text !== shown) stream.write(stream.isTTY ? `${CLEAR_SCREEN}${text}` : text);
      shown = text;
      await pause(lookMs, signal);
    }
  };
}
