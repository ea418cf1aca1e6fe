import type { IncomingMessage, ServerResponse } from 'node:http';
import type * as z from 'zod';
import { ApiError } from '#shared/kubernetes/http/api-error.ts';
import { KubeconfigError } from '#shared/kubernetes/kubeconfig/kubeconfig-file.ts';
import { LabelSelectorError } from '#shared/operations/ask/label-selector.ts';
import { FleetError } from '#shared/operations/fleet/fleet.ts';
import { OperatorError } from '#shared/state/operator.ts';
import { PolicyError } from '#shared/state/policy-document.ts';
import { QueueError } from '#shared/state/sender.ts';
import { StoreError } from '#shared/state/store.ts';
import { TaintArgumentError } from '#shared/taints/taint-argument.ts';
import type { Log } from '#shared/telemetry/log.ts';
import { escapeForDisplay } from '#shared/text/escape-for-display.ts';
import { firstFault, readAs } from '#shared/text/read-as.ts';
import { StaleActError } from './acts.ts';
import { type Answers, NothingThereError } from './answers.ts';
import { FAILED, type Failure } from './api.ts';
import type { Live } from './live.ts';

/** Maximum size of a request. Actual requests are a few lines. */
export const MAX_BODY_BYTES = 64 * 1024;

/** Errors whose messages are for the caller, and their HTTP status. */
const STATUS: readonly (readonly [number, readonly (new (...args: never[]) => Error)[]])[] = [
  [404, [NothingThereError]],
  [409, [StaleActError]],
  [422, [FleetError, KubeconfigError, LabelSelectorError, OperatorError, PolicyError, TaintArgumentError]],
  [502, [ApiError, QueueError, StoreError]],
];

export interface SessionRequest {
  /** Path as in `Api`: `api/status`. */
  readonly path: string;
  readonly searchParams: URLSearchParams;
  /** The session's token. Empty: there is no session. */
  readonly token: string;
  /** Aborts when the session ends. */
  readonly ended: AbortSignal;
}

export interface ApiServerDeps {
  readonly answers: Answers;
  readonly live: Live;
  readonly log: Log;
}

/** Answers the console's API over HTTP. It does not authenticate: the caller must. */
export class ApiServer {
  readonly #deps: ApiServerDeps;

  constructor(deps: ApiServerDeps) {
    this.#deps = deps;
  }

  /** Never rejects. */
  async answer(request: IncomingMessage, response: ServerResponse, question: SessionRequest): Promise<void> {
    try {
      await this.#answer(request, response, question);
    } catch (error) {
      const failure = failureOf(error);
      // Log neither the query nor the session, because they contain tokens.
      if (failure.status >= 500) this.#deps.log.error('console.failed', { path: question.path, error });
      if (response.headersSent) response.destroy();
      else sendJson(response, failure.status, { error: escapeForDisplay(failure.message) } satisfies Failure);
    }
  }

  async #answer(
    request: IncomingMessage,
    response: ServerResponse,
    { path, searchParams, token, ended }: SessionRequest,
  ): Promise<void> {
    const { answers, live } = this.#deps;
    if (request.method === 'GET' && path === 'api/live') {
      if (!(await live.join(response, ended))) throw new RejectedError(503, 'Too many pages are connected.');
      return;
    }
    const route = `${request.method} ${path}`;
    if (!Object.hasOwn(answers, route))
      throw new RejectedError(404, `There is no ${escapeForDisplay(route, 100)}.`);
    const { schema, answer } = answers[route as keyof Answers];
    const asks = request.method === 'GET' ? Object.fromEntries(searchParams) : await readJson(request);
    const read = readAs(schema as z.ZodType, asks);
    if (!read.success) throw new RejectedError(400, sentence(read.error));
    const answered = await answer(read.data, token);
    if (typeof answered === 'string') send(response, 200, 'text/csv; charset=utf-8', answered);
    else sendJson(response, 200, answered);
  }
}

class RejectedError extends Error {
  override readonly name = 'RejectedError';
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

function failureOf(error: unknown): { readonly status: number; readonly message: string } {
  if (error instanceof RejectedError) return error;
  const [status] = STATUS.find(([, kinds]) => kinds.some((kind) => error instanceof kind)) ?? [];
  if (status === undefined) return { status: 500, message: FAILED };
  return { status, message: (error as Error).message };
}

function sentence(error: z.ZodError): string {
  const { field, fault } = firstFault(error);
  return field ? `${field}: ${fault}.` : `${fault}.`;
}

async function readJson(request: IncomingMessage): Promise<unknown> {
  const type = request.headers['content-type']?.split(';')[0]?.trim();
  // Forms of other sites can only send other content types.
  if (type !== 'application/json') throw new RejectedError(415, 'Send JSON, as application/json.');
  const body = await bodyOf(request);
  try {
    return JSON.parse(body);
  } catch {
    throw new RejectedError(400, 'The request body is not JSON.');
  }
}

async function bodyOf(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  try {
    for await (const chunk of request as AsyncIterable<Buffer>) {
      bytes += chunk.length;
      if (bytes > MAX_BODY_BYTES) break;
      chunks.push(chunk);
    }
  } catch {
    throw new RejectedError(400, 'It ended before all of it was sent.');
  }
  if (bytes > MAX_BODY_BYTES) throw new RejectedError(413, `Send at most ${MAX_BODY_BYTES} bytes.`);
  return Buffer.concat(chunks).toString();
}

const sendJson = (response: ServerResponse, status: number, answer: unknown): void =>
  send(response, status, 'application/json', JSON.stringify(answer));

function send(response: ServerResponse, status: number, type: string, text: string): void {
  const body = Buffer.from(text);
  response.writeHead(status, { 'content-type': type, 'content-length': body.length });
  response.end(body);
}
