import assert from 'node:assert/strict';
import type { Api } from '#shared/console/api.ts';
import { assertMatches } from '#test/contracts/published-schemas.ts';

/** Makes the requests of a console's page. */
export type ConsoleRequest = <Route extends keyof Api>(
  route: Route,
  parameters: Api[Route]['asks'],
) => Promise<Api[Route]['answer']>;

/** Opens the link to a console; returns the answer, and the requests of its page. */
export async function opened(
  link: string,
): Promise<{ readonly entered: Response; readonly request: ConsoleRequest }> {
  const { origin } = new URL(link);
  const entered = await fetch(link);
  const [cookie = ''] = entered.headers.get('set-cookie')?.split(';') ?? [];
  const [path = ''] = /(?<=url=)\/[^/]+\//.exec(await entered.text()) ?? [];
  const headers: Record<string, string> = { cookie, origin, 'content-type': 'application/json' };
  const request: ConsoleRequest = async (route, parameters) => {
    const [method = '', name] = route.split(' ');
    const query = method === 'GET' ? `?${new URLSearchParams(parameters as Record<string, string>)}` : '';
    const body = method === 'GET' ? {} : { body: JSON.stringify(parameters) };
    const answer = await fetch(`${origin}${path}${name}${query}`, { method, headers, ...body });
    const json = await answer.json();
    assert.equal(answer.status, 200, JSON.stringify(json));
    assertMatches('console', { [route]: json });
    return json;
  };
  headers['x-taintward-token'] = (await request('GET api/session', {})).token;
  return { request, entered };
}
