import { pause } from './pause.ts';

/** Calls `stop` when the process is asked to stop, by Ctrl-C or its supervisor. Repeated, the same signal kills it. */
export function onStopSignal(stop: () => void): void {
  for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, stop);
}

/** Waits for `work`, at most `ms`. Reports whether `work` ended. Rejects as `work` does. */
export async function endsWithin(ms: number, work: Promise<unknown>): Promise<boolean> {
  const ended = new AbortController();
  await Promise.race([work.then(() => ended.abort()), pause(ms, ended.signal)]);
  return ended.signal.aborted;
}
