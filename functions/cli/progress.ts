/** How far long work has come, for whoever watches; absent text: it is over. */
export type Progress = (text?: string) => void;

const CLEAR_LINE = '\r\u001b[K';

/** One line of standard error that is written over, where that is a terminal; else nothing. */
export function terminalProgress(stream: Pick<NodeJS.WriteStream, 'isTTY' | 'write'>): Progress {
  if (!stream.isTTY) return () => undefined;
  let shown = false;
  return (text) => {
    if (text === undefined && !shown) return;
    stream.write(text === undefined ? CLEAR_LINE : `${CLEAR_LINE}${text}`);
    shown = text !== undefined;
  };
}
