import { durationText } from './duration.ts';
import { pause } from './pause.ts';

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;
/** A terminal sends Ctrl-C to npm and to its child, and npm forwards it: signals within this time are one request. */
const ONE_REQUEST_MS = 1_000;
const PARENT_CHECK_MS = 1_000;
/** Calls to a service that works end within this time. */
export const ANSWERED_WITHIN_MS = 5_000;

/**
 * Calls `stop` once when the process is asked to stop: by Ctrl-C, by its supervisor, or by the end of the npm that runs
 * it, because npm forwards neither SIGHUP nor SIGKILL. A later signal kills the process.
 */
export function onStopSignal(stop: () => void): void {
  let requested = false;
  const request = () => {
    if (requested) return;
    requested = true;
    setTimeout(() => {
      for (const signal of SIGNALS) process.off(signal, request);
    }, ONE_REQUEST_MS).unref();
    stop();
  };
  for (const signal of SIGNALS) process.on(signal, request);
  if (process.env['npm_lifecycle_event'] === undefined) return;
  const parent = process.ppid;
  setInterval(() => process.ppid !== parent && request(), PARENT_CHECK_MS).unref();
}

/** Waits for `work`, at most `ms`. Reports whether `work` ended. Rejects as `work` does. */
export async function endsWithin(ms: number, work: Promise<unknown>): Promise<boolean> {
  const waited = new AbortController();
  try {
    return await Promise.race([work.then(() => true), pause(ms, waited.signal).then(() => false)]);
  } finally {
    waited.abort();
  }
}

/** Resolves as `call` does. Calls `report` if the call is still pending after `ms`: it neither fails nor succeeds. */
export async function reportSilence<T>(
  call: Promise<T>,
  report: (error: Error) => void,
  ms = ANSWERED_WITHIN_MS,
): Promise<T> {
  const silence = setTimeout(() => report(new Error(`There is no answer within ${durationText(ms)}`)), ms);
  try {
    return await call;
  } finally {
    clearTimeout(silence);
  }
}
