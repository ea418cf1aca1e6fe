/** Shows the progress of long work. Absent text: the work is over. */
export type Progress = (text?: string) => void;

const CLEAR_LINE = '\r\u001b[K';

/** Shows progress on one line that is overwritten. If the stream is not a terminal, shows nothing. */
export function terminalProgress(stream: Pick<NodeJS.WriteStream, 'isTTY' | 'write'>): Progress {
  if (!stream.isTTY) return () => undefined;
  let shown = false;
  return (text) => {
    if (text === undefined && !shown) return;
    stream.write(text === undefined ? CLEAR_LINE : `${CLEAR_LINE}${text}`);
    shown = text !== undefined;
  };
}
