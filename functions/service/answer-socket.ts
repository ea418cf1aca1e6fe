import type { ServerResponse } from 'node:http';
import type { ApiServer } from '#shared/console/api-server.ts';
import type { Serve } from '#shared/http/listener.ts';
import type { ConsoleLink, ServiceView } from '#shared/operations/fleet/service-view.ts';

export interface SocketAnswers {
  /** What the process knows, and nobody else. */
  readonly view: () => ServiceView;
  /** A new link to the console that the process serves; `undefined`: it serves none. */
  readonly link: () => string | undefined;
  /** The console's API; called for each question to it. */
  readonly api: () => Promise<ApiServer>;
}

/**
 * Answers whoever may read the state directory: `/service` is what the process knows, `/console/link`, which is
 * posted, a new link to its console, `/api/…` that console's API. The file's rights say who that is, so there is neither session nor
 * token.
 */
export function answerSocket({ view, link, api }: SocketAnswers): Serve {
  // It lasts as long as its connection does.
  const { signal: ended } = new AbortController();
  return async (request, response, { url: { pathname, searchParams } }) => {
    const route = `${request.method} ${pathname}`;
    if (route === 'GET /service') return sendJson(response, view());
    if (route === 'POST /console/link') return sendJson(response, linked(link()));
    if (!pathname.startsWith('/api/')) return void response.writeHead(404).end();
    const asked = { path: pathname.slice(1), searchParams, token: '', ended };
    await (await api()).answer(request, response, asked);
  };
}

const linked = (link: string | undefined): ConsoleLink => (link === undefined ? {} : { link });

const sendJson = (response: ServerResponse, answer: ServiceView | ConsoleLink): void =>
  void response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(answer));
