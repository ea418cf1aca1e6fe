import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { Http2ServerRequest } from 'node:http2';
import { describe, type TestContext, test } from 'node:test';
import { setImmediate as tick } from 'node:timers/promises';
import type { RestApi } from '#shared/kubernetes/rest-api.ts';
import { DrivenClock } from '#test/world/driven-clock.ts';
import { until } from '#test/world/turns.ts';
import { holdingServer, NOW, POD, UID, unanswered } from './builders.ts';
import { scriptedServer } from './scripted-server.ts';

const NOT_AFTER = NOW + 250;

const CALLS = {
  'a delete': (api: RestApi) => api.deletePod(POD, { uid: UID }, NOT_AFTER),
  'an eviction': (api: RestApi) => api.evictPod(POD, { uid: UID }, NOT_AFTER),
} as const;

for (const protocol of ['http/1.1', 'http/1.1 over TLS', 'h2'] as const) {
  /** Starts a call, waits until the server has it, and advances the clock far beyond its send deadline. */
  async function sentInTime(t: TestContext, call: (api: RestApi) => Promise<unknown>) {
    const clock = new DrivenClock(NOW);
    const { api, cut, held, requests } = await holdingServer(t, { clock, protocol });
    t.mock.timers.enable({ apis: ['setTimeout'] });
    const calling = call(api);
    calling.catch(() => undefined);
    await until(() => held.length === 1);
    await clock.advanceTo(NOT_AFTER + 150);
    t.mock.timers.tick(400);
    for (let turns = 0; turns < 5; turns++) await tick();
    return { calling, held, cut, requests };
  }

  describe(`over ${protocol}`, () => {
    for (const [what, call] of Object.entries(CALLS)) {
      test(`${what} that was sent in time succeeds with a late answer and is sent once`, async (t) => {
        const { calling, held, requests } = await sentInTime(t, call);
        held[0]?.end('{}');
        await calling;
        assert.equal(requests.length, 1);
      });

      test(`${what} that was sent in time is unanswered if its answer is lost later`, async (t) => {
        const { calling, cut, requests } = await sentInTime(t, call);
        cut();
        await unanswered(calling);
        assert.equal(requests.length, 1);
      });
    }
  });
}

test('withdraws a request that the server reads too slowly, as unanswered', async (t) => {
  const clock = new DrivenClock(NOW);
  const options = { clock, protocol: 'h2', windowBytes: 0 } as const;
  const { api, server } = await scriptedServer(t, () => undefined, options);
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const message = unanswered(api.deletePod(POD, { uid: UID }, NOT_AFTER));
  const [request]: Http2ServerRequest[] = await once(server, 'request');
  assert.ok(request);
  let bodyBytes = 0;
  request.on('data', (piece: Buffer) => {
    bodyBytes += piece.length;
  });
  const closed = once(request.stream, 'close').catch(() => undefined);
  await clock.advanceTo(NOT_AFTER + 1);
  t.mock.timers.tick(251);
  assert.match(await message, /read too slowly/);
  await closed;
  assert.equal(bodyBytes, 0);
});
