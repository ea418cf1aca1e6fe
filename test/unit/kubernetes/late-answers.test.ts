import assert from 'node:assert/strict';
import { once } from 'node:events';
import { describe, type TestContext, test } from 'node:test';
import { setImmediate as tick } from 'node:timers/promises';
import { podUid } from '#shared/eviction/identity.ts';
import { ApiError } from '#shared/kubernetes/http/api-error.ts';
import type { RestApi } from '#shared/kubernetes/rest-api.ts';
import { DrivenClock } from '#test/world/driven-clock.ts';
import { until } from '#test/world/turns.ts';
import { scriptedServer } from './scripted-server.ts';
import { tlsServer } from './tls-server.ts';

const POD = { namespace: 'shop', name: 'web-0' };
const UID = podUid('7d1f');
const NOW = Date.UTC(2026, 10, 21, 11, 13, 53, 789);
const NOT_AFTER = NOW + 250;

/** A request that a server has received completely and not answered. */
interface Held {
  answer(): void;
  /** Breaks the request's connection. */
  lose(): void;
}

type Hold = (
  t: TestContext,
  clock: DrivenClock,
) => Promise<{ readonly api: RestApi; readonly held: readonly Held[] }>;

const overPlain: Hold = async (t, clock) => {
  const held: Held[] = [];
  const hold = (response: Parameters<Parameters<typeof scriptedServer>[1]>[0]) =>
    held.push({ answer: () => response.end('{}'), lose: () => response.socket?.resetAndDestroy() });
  return { held, ...(await scriptedServer(t, hold, { clock })) };
};

const overTls =
  (http2: boolean): Hold =>
  async (t, clock) => {
    const held: Held[] = [];
    const server = await tlsServer(
      t,
      (response, request) => {
        const lose = () => (http2 ? response.stream.session?.destroy() : request.socket.destroy());
        request.once('end', () => held.push({ answer: () => response.end('{}'), lose }));
      },
      { clock, http2 },
    );
    return { held, ...server };
  };

const CALLS = {
  'a delete': (api: RestApi) => api.deletePod(POD, { uid: UID }, NOT_AFTER),
  'an eviction': (api: RestApi) => api.evictPod(POD, { uid: UID }, NOT_AFTER),
} as const;

/** Starts a call, waits until the server has it, and advances the clock far beyond its send deadline. */
async function sentInTime(t: TestContext, hold: Hold, call: (api: RestApi) => Promise<unknown>) {
  const clock = new DrivenClock(NOW);
  const { api, held } = await hold(t, clock);
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const calling = call(api);
  calling.catch(() => undefined);
  await until(() => held.length === 1);
  await clock.advanceTo(NOT_AFTER + 150);
  t.mock.timers.tick(400);
  for (let turns = 0; turns < 5; turns++) await tick();
  return { calling, held };
}

for (const [protocol, hold] of [
  ['HTTP/1.1', overPlain],
  ['HTTP/1.1 within TLS', overTls(false)],
  ['HTTP/2', overTls(true)],
] as const satisfies readonly (readonly [string, Hold])[]) {
  describe(`over ${protocol}`, () => {
    for (const [what, call] of Object.entries(CALLS)) {
      test(`${what} that was sent in time succeeds with a late answer and is sent once`, async (t) => {
        const { calling, held } = await sentInTime(t, hold, call);
        held[0]?.answer();
        await calling;
        assert.equal(held.length, 1);
      });

      test(`${what} that was sent in time is unanswered if its answer is lost later`, async (t) => {
        const { calling, held } = await sentInTime(t, hold, call);
        held[0]?.lose();
        await assert.rejects(calling, (error) => error instanceof ApiError && error.status === 0);
        assert.equal(held.length, 1);
      });
    }
  });
}

test('withdraws a request that the server reads too slowly, as unanswered', async (t) => {
  const clock = new DrivenClock(NOW);
  let bodyBytes = 0;
  const { api, requests } = await tlsServer(t, () => undefined, { clock, windowBytes: 0 });
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const calling = assert.rejects(
    api.deletePod(POD, { uid: UID }, NOT_AFTER),
    (error) => error instanceof ApiError && error.status === 0 && error.message.includes('read too slowly'),
  );
  await until(() => requests.length === 1);
  const [request] = requests;
  assert.ok(request);
  request.on('data', (piece: Buffer) => {
    bodyBytes += piece.length;
  });
  const closed = once(request.stream, 'close').catch(() => undefined);
  await clock.advanceTo(NOT_AFTER + 1);
  t.mock.timers.tick(251);
  await calling;
  await closed;
  assert.equal(bodyBytes, 0);
});
