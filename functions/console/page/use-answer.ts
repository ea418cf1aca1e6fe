import { useEffect, useState } from 'preact/hooks';
import { whenever } from './live.ts';
import { sentenceOf } from './server.ts';

/** An answer, or why there is none. Neither: it is not known yet. */
export interface Answered<T> {
  readonly answer?: T;
  readonly error?: string;
}

/**
 * Asks when shown and when one of `by` changes; with `live`, whenever the answer may have changed. The last answer
 * stays meanwhile.
 */
export function useAnswer<T>(
  ask: (signal: AbortSignal) => Promise<T>,
  inputs: readonly unknown[],
  live: boolean,
): Answered<T> {
  const [state, setState] = useState<Answered<T>>({});
  useEffect(() => {
    const aborted = new AbortController();
    const once = () => {
      ask(aborted.signal).then(
        (answer) => {
          if (!aborted.signal.aborted) setState({ answer });
        },
        (error: unknown) => {
          if (!aborted.signal.aborted) setState({ error: sentenceOf(error) });
        },
      );
    };
    const end = live ? whenever(once) : once();
    return () => {
      aborted.abort();
      end?.();
    };
  }, inputs);
  return state;
}
