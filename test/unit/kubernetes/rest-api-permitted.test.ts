import assert from 'node:assert/strict';
import { test } from 'node:test';
import { podUid } from '#shared/eviction/identity.ts';
import { RestApi } from '#shared/kubernetes/rest-api.ts';
import { systemClock } from '#shared/time/clock.ts';

test('a replica without the lease rejects pod calls before any request is sent', async (t) => {
  const calls: string[] = [];
  const connection = {
    host: 'nowhere',
    requestOptions: async () => {
      calls.push('something');
      throw new Error('asked');
    },
  };
  const api = new RestApi(connection, systemClock, 'a', () => false);
  t.after(() => api.close());
  const pod = { namespace: 'default', name: 'web-0' };
  const refusal = {
    name: 'ApiError',
    message: /default\/web-0: this replica doesn't hold the lease\.$/,
  };
  await assert.rejects(api.deletePod(pod, { uid: podUid('u') }), refusal);
  await assert.rejects(api.evictPod(pod, { uid: podUid('u') }), refusal);
  await assert.rejects(api.markDisrupted(pod, podUid('u'), 0), refusal);
  assert.deepEqual(calls, []);
});
