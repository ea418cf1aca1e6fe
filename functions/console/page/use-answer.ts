import { useEffect, useState } from 'preact/hooks';
import type { Api } from '#shared/console/api.ts';
import { whenever } from './live.ts';
import { get, type Questions, sentenceOf } from './server.ts';

/** An answer, or why there is none. Neither: it is not known yet. */
export interface Answered<T> {
  readonly answer?: T;
  readonly error?: string;
}

/** Asks when shown, when one of `inputs` changes, and whenever the answer may have changed. The last answer stays meanwhile. */
export function useAnswer<Q extends Questions>(
  question: Q,
  asks: () => Api[Q]['asks'],
  inputs: readonly unknown[],
): Answered<Api[Q]['answer']> {
  const [state, setState] = useState<Answered<Api[Q]['answer']>>({});
  useEffect(() => {
    const aborted = new AbortController();
    const end = whenever(() => {
      get(question, asks(), aborted.signal).then(
        (answer) => {
          if (!aborted.signal.aborted) setState({ answer });
        },
        (error: unknown) => {
          if (!aborted.signal.aborted) setState({ error: sentenceOf(error) });
        },
      );
    });
    return () => {
      aborted.abort();
      end();
    };
  }, inputs);
  return state;
}
