import assert from 'node:assert/strict';
import type { ServerResponse } from 'node:http';
import { describe, type TestContext, test } from 'node:test';
import { setImmediate as tick } from 'node:timers/promises';
import { nodeName, podUid } from '#shared/eviction/identity.ts';
import type { Method } from '#shared/eviction/policy.ts';
import { ApiError } from '#shared/kubernetes/http/api-error.ts';
import { refuserOf } from '#shared/kubernetes/http/eviction-refusal.ts';
import { CALL_TIMEOUT_MS } from '#shared/kubernetes/http/transport.ts';
import type { RestApi } from '#shared/kubernetes/rest-api.ts';
import { livePod } from '#test/unit/engine/watch/live-objects.ts';
import { at, tolerating } from '#test/unit/eviction/builders.ts';
import { scriptedServer } from '#test/unit/kubernetes/scripted-server.ts';
import { asReported, ruled } from './evict-bench.ts';

const NODE = nodeName('n1');
const POD = { namespace: 'shop', name: 'vm' };
const UID = podUid('7d1f');
/** More failures than open the breaker. */
const CALLS = 10;

/** Makes calls that the server does not answer before their timeout. */
async function unanswered(t: TestContext, call: (api: RestApi) => Promise<unknown>) {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const held: ServerResponse[] = [];
  const { api } = await scriptedServer(t, (response) => held.push(response));
  const calls = Array.from({ length: CALLS }, () =>
    call(api).then(
      () => assert.fail('should have rejected'),
      (error: unknown) => error,
    ),
  );
  while (held.length < CALLS) await tick();
  t.mock.timers.tick(CALL_TIMEOUT_MS);
  const [error] = await Promise.all(calls);
  assert.ok(error instanceof ApiError, String(error));
  return { api, error };
}

describe('calls without an answer in time', () => {
  for (const [what, call] of [
    ['evictions', (api) => api.evictPod(POD, { uid: UID })],
    ['deletions', (api) => api.deletePod(POD, { uid: UID })],
    ['marks', (api) => api.markDisrupted(POD, UID, at(0))],
  ] as const satisfies readonly (readonly [string, (api: RestApi) => Promise<unknown>])[]) {
    test(`${what} do not count as a server failure, because webhooks may delay them`, async (t) => {
      const { api, error } = await unanswered(t, call);
      assert.equal(refuserOf(error), 'other');
      assert.match(error.message, /within 10s; an admission webhook may have kept it waiting\.$/);
      assert.equal(api.breakerOpen, false);
    });
  }

  test('reads count as a server failure, which opens the breaker', async (t) => {
    const { api, error } = await unanswered(t, (api) => api.getNode(NODE));
    assert.equal(refuserOf(error), 'server');
    assert.match(error.message, /within 10s\.$/);
    assert.equal(api.breakerOpen, true);
  });

  test('a write whose connection breaks counts as a server failure', async (t) => {
    const { api } = await scriptedServer(t, (response) => response.socket?.resetAndDestroy());
    await assert.rejects(
      api.evictPod(POD, { uid: UID }),
      (error) => error instanceof ApiError && refuserOf(error) === 'server',
    );
  });

  test('a pod with an unanswered eviction fails alone, and a later pod of its node is evicted on time', async (t) => {
    const { error } = await unanswered(t, (api) => api.evictPod(POD, { uid: UID }));
    const method: Method = { kind: 'evict', timeoutMs: 600_000, onTimeout: 'fail' };
    const bench = await asReported(
      livePod('vm', { labels: { app: 'vm' } }),
      livePod('web'),
      livePod('late', { tolerations: [tolerating('a', 61)] }),
    );
    bench.ruling = ruled({ method });
    bench.cluster.admission.set('vm', error);
    assert.deepEqual(await bench.evicts(), ['web']);
    const { node, scheduled } = await bench.stored();
    assert.equal(node?.retry?.everything, false);
    assert.equal(scheduled.get(podUid('vm'))?.failure?.error, error.message);
    assert.deepEqual(await bench.evicts(at(61)), ['late', 'web']);
  });
});
