import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import type { ApiServer } from '#functions/console/api-server.ts';
import type { ServiceView } from './service-view.ts';

export interface SocketAnswers {
  /** What the process knows, and nobody else. */
  readonly view: () => ServiceView;
  /** The console's API; called when it is first asked for. */
  readonly api: () => Promise<ApiServer>;
}

/**
 * Answers whoever may read the state directory: `/service` is what the process knows, `/api/…` is the console's API. The
 * file's rights say who that is, so there is neither session nor token.
 */
export function answerSocket({ view, api }: SocketAnswers): RequestListener {
  let made: Promise<ApiServer> | undefined;
  // It lasts as long as its connection does.
  const { signal: ended } = new AbortController();
  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const url = URL.parse(request.url ?? '/', 'http://socket');
    if (request.method === 'GET' && url?.pathname === '/service') {
      response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(view()));
      return;
    }
    if (!url?.pathname.startsWith('/api/')) return void response.writeHead(404).end();
    made ??= api();
    const { pathname, searchParams } = url;
    await (await made).answer(request, response, { path: pathname.slice(1), searchParams, token: '', ended });
  };
  return (request, response) => void answer(request, response).catch(() => response.destroy());
}
