import type { ServerResponse } from 'node:http';
import type { ApiServer } from '#shared/console/api-server.ts';
import type { Serve } from '#shared/http/listener.ts';
import type { ConsoleLink, ServiceView } from '#shared/operations/fleet/service-view.ts';

export interface SocketAnswers {
  readonly view: () => ServiceView;
  /** Makes a new link to the console that the process serves. `undefined`: it serves none. */
  readonly link: () => string | undefined;
  /** Called for each request to it. */
  readonly api: () => Promise<ApiServer>;
}

/**
 * Serves processes that may read the state directory. The file's permissions control access, so there is no
 * session and no token.
 * - `GET /service`: the state of this process
 * - `POST /console/link`: a new link to its console
 * - `/api/…`: the console's API
 */
export function answerSocket({ view, link, api }: SocketAnswers): Serve {
  // A signal that never fires: the request lasts as long as its connection.
  const { signal: ended } = new AbortController();
  return async (request, response, { url: { pathname, searchParams } }) => {
    const route = `${request.method} ${pathname}`;
    if (route === 'GET /service') return sendJson(response, view());
    if (route === 'POST /console/link') return sendJson(response, linked(link()));
    if (!pathname.startsWith('/api/')) return void response.writeHead(404).end();
    const question = { path: pathname.slice(1), searchParams, token: '', ended };
    await (await api()).answer(request, response, question);
  };
}

const linked = (link: string | undefined): ConsoleLink => (link === undefined ? {} : { link });

const sendJson = (response: ServerResponse, answer: ServiceView | ConsoleLink): void =>
  void response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(answer));
