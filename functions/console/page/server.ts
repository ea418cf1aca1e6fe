import type { Api, Failure } from '#shared/console/api.ts';

export type Questions = Extract<keyof Api, `GET ${string}`>;
type Orders = Extract<keyof Api, `POST ${string}`>;

/** A frozen server accepts requests, and never answers. */
const ANSWERED_MS = 30_000;

/** The server rejected a request or didn't respond. The message is a sentence for people. */
export class ServerError extends Error {
  override readonly name = 'ServerError';
  /** HTTP status. 0: no response. */
  readonly status: number;

  constructor(message: string, status: number) {
    super(message);
    this.status = status;
  }
}

/** Asks a question. Rejects with `ServerError`. */
export async function get<Q extends Questions>(
  question: Q,
  asks: Api[Q]['asks'],
  signal?: AbortSignal,
): Promise<Api[Q]['answer']> {
  return answer(pathOf(question, asks), signal ? { signal } : {});
}

/** Returns the path of an answer, as for a link to a file. */
export function pathOf(question: Questions, asks: object): string {
  const fields = Object.entries(asks).filter(([, value]) => value !== undefined && value !== '');
  const query = new URLSearchParams(fields.map(([name, value]) => [name, String(value)]));
  return `${question.slice('GET '.length)}${query.size > 0 ? `?${query}` : ''}`;
}

let token: Promise<string> | undefined;

/** Does an act. Rejects with `ServerError`. */
export async function post<O extends Orders>(order: O, asks: Api[O]['asks']): Promise<Api[O]['answer']> {
  token ??= get('GET api/session', {}).then((session) => session.token);
  token.catch(() => {
    token = undefined;
  });
  return answer(order.slice('POST '.length), {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-taintward-token': await token },
    body: JSON.stringify(asks),
  });
}

async function answer<T>(path: string, init: RequestInit): Promise<T> {
  const signals = [AbortSignal.timeout(ANSWERED_MS), ...(init.signal ? [init.signal] : [])];
  const unanswered = (error: unknown): never => {
    if (error instanceof DOMException && error.name === 'AbortError') throw error;
    throw new ServerError('The server does not respond. Check that taintward is still running.', 0);
  };
  const response = await fetch(path, { ...init, signal: AbortSignal.any(signals) }).catch(unanswered);
  if (response.ok) return response.json().catch(unanswered);
  const failure: Partial<Failure> = await response.json().catch(() => ({}));
  throw new ServerError(failure.error ?? `The server answered ${response.status}.`, response.status);
}

/** Returns the message of an error, for people. */
export const sentenceOf = (error: unknown): string =>
  error instanceof Error ? error.message : String(error);
