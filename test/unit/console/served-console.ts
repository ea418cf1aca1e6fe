import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { type IncomingMessage, request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import type { DemoCluster, Questions } from '#shared/console/answers.ts';
import type { Api } from '#shared/console/api.ts';
import { fleetApi } from '#shared/console/fleet-api.ts';
import { type PageFiles, readPageFiles } from '#shared/console/page-files.ts';
import { startConsole } from '#shared/console/server.ts';
import { type ContextFleet, type Fleet, FleetError } from '#shared/operations/fleet/fleet.ts';
import { VERSION } from '#shared/version.ts';
import { NOW } from '#test/contracts/partition-builders.ts';
import { assertMatches } from '#test/contracts/published-schemas.ts';
import { recordingLog } from '#test/contracts/recording-log.ts';
import { DrivenClock } from '#test/world/driven-clock.ts';
import { embeddedFleet } from '#test/world/embedded-fleet.ts';

export interface Answered {
  readonly status: number;
  readonly headers: IncomingMessage['headers'];
  readonly body: string;
}

/** Writes a page of a single module, which suffices for these tests, and returns its directory. */
export function aPage(t: Pick<TestContext, 'after'>): string {
  const directory = mkdtempSync(join(tmpdir(), 'page-'));
  t.after(() => rmSync(directory, { recursive: true }));
  writeFileSync(
    join(directory, 'index.html'),
    '<!doctype html><title>T</title><link rel="stylesheet" href="assets/styles.css"><script type="module" src="assets/main.ts"></script>',
  );
  writeFileSync(join(directory, 'styles.css'), 'body { margin: 0 }');
  writeFileSync(
    join(directory, 'main.ts'),
    "import { h } from 'preact';\nexport const made: unknown = h('p', null);\n",
  );
  return directory;
}

/** Questions that return their own arguments. */
const NO_QUESTIONS = Object.fromEntries(
  ['explainPod', 'explainNode', 'tolerations', 'whatIf'].map((name) => [
    name,
    async (asks: object) => ({ question: asks }),
  ]),
) as unknown as Questions;

const UNREAL = /^api\/(explain|tolerations|what-if)/;

/** Serves a console of an in-memory fleet and sends it requests exactly as given, including those that a browser would not send. */
export async function servedConsole(
  t: Pick<TestContext, 'after'>,
  {
    clusters = ['prod'],
    demo,
    host: address = '127.0.0.1',
    page = readPageFiles(aPage(t)),
    parts = {},
    live = false,
    own,
  }: {
    readonly clusters?: readonly string[];
    readonly demo?: DemoCluster;
    readonly host?: string;
    readonly page?: PageFiles;
    /** Replace parts of the fleet. */
    readonly parts?: Partial<Fleet>;
    /** Questions are answered from the fleet's clusters. */
    readonly live?: boolean;
    /** The operator's own context. */
    readonly own?: ContextFleet | undefined;
  } = {},
) {
  const clock = new DrivenClock(NOW);
  const world = embeddedFleet(
    t,
    {
      clusters,
      clock,
    },
    {
      cluster: async () => {
        throw new FleetError('it cannot be asked');
      },
      service: async () => ({ version: VERSION, startedAt: NOW, queues: {}, clusters: {} }),
      ...parts,
    },
  );
  const log = recordingLog();
  const console = await startConsole({
    api: async () =>
      fleetApi({
        fleet: world.fleet,
        ...(live ? {} : { questions: NO_QUESTIONS }),
        own,
        demo,
        clock,
        log,
        matching: { comparisonOperators: false },
      }),
    host: address,
    port: 0,
    portSetBy: '--port',
    clock,
    log,
    page,
  });
  t.after(() => console.close());
  const { port, host } = new URL(console.address);

  const send = async (
    method: string,
    path: string,
    headers: Readonly<Record<string, string>> = {},
    body = '',
  ): Promise<Answered> => {
    const sent = request({ host: address, port, method, path, headers, agent: false });
    sent.end(body);
    const [response] = (await once(sent, 'response')) as [IncomingMessage];
    const chunks = await Array.fromAsync(response as AsyncIterable<Buffer>);
    const { statusCode: status = 0, headers: answered } = response;
    return { status, headers: answered, body: Buffer.concat(chunks).toString() };
  };

  /** Opens a link as a browser does. */
  const enter = async (link = console.link()) => {
    const { pathname, search } = new URL(link);
    const entered = await send('GET', `${pathname}${search}`);
    const cookie = entered.headers['set-cookie']?.[0]?.split(';')[0] ?? '';
    const path = /url=(\/[^/]+\/)/.exec(entered.body)?.[1] ?? '';
    const { token } = JSON.parse((await send('GET', `${path}api/session`, { cookie })).body) as {
      token: string;
    };
    /** Headers that the page sends with each action. */
    const own = {
      cookie,
      'x-taintward-token': token,
      origin: `http://${host}`,
      'content-type': 'application/json',
      'sec-fetch-site': 'same-origin',
    };
    /** Calls the API as the page does. */
    const ask = async <Route extends keyof Api>(
      route: Route,
      asks: Api[Route]['asks'],
    ): Promise<Api[Route]['answer']> => {
      const [method = '', name] = route.split(' ');
      const answer =
        method === 'GET'
          ? await send('GET', `${path}${name}?${new URLSearchParams(asks as Record<string, string>)}`, own)
          : await send(method, `${path}${name}`, own, JSON.stringify(asks));
      if (answer.status !== 200) throw new Error(`${answer.status} ${answer.body}`);
      const answered = JSON.parse(answer.body);
      if (!UNREAL.test(name ?? '')) assertMatches('console', { [route]: answered });
      return answered as Api[Route]['answer'];
    };
    return { path, cookie, token, own, ask, entered };
  };
  return { ...world, clock, log, console, host, port, send, enter };
}
