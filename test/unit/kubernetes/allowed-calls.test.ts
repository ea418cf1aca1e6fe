import assert from 'node:assert/strict';
import { test } from 'node:test';
import { LateCallError } from '#shared/kubernetes/http/api-error.ts';
import { NOW, POD, UID } from './builders.ts';
import { json, scriptedServer } from './scripted-server.ts';

const marked = json({
  metadata: { ...POD, uid: UID, resourceVersion: '7', creationTimestamp: new Date(NOW).toISOString() },
});

test('checks permission when a slot is free, not while other calls are ahead', async (t) => {
  const answers: (() => void)[] = [];
  const { api, requests } = await scriptedServer(t, (response, request) => {
    answers.push(() => marked(response, request));
  });
  let allowed = 0;
  const calls = Array.from({ length: 200 }, () =>
    api.markDisrupted(POD, UID, NOW, async () => {
      allowed += 1;
      return Infinity;
    }),
  );
  while (requests.length < 1) await new Promise(setImmediate);
  assert.ok(allowed >= 1 && allowed < 200, `${allowed} of 200`);
  const pump = setInterval(() => {
    for (const answer of answers.splice(0)) answer();
  }, 1);
  t.after(() => clearInterval(pump));
  await Promise.all(calls);
  assert.deepEqual([allowed, requests.length], [200, 200]);
});

test('does not send a call whose permission was denied or has expired when its slot is free', async (t) => {
  const { api, requests } = await scriptedServer(t, marked);
  const refused = new LateCallError('not any more');
  await assert.rejects(
    api.markDisrupted(POD, UID, NOW, () => Promise.reject(refused)),
    refused,
  );
  await assert.rejects(
    api.markDisrupted(POD, UID, NOW, async () => 0),
    { name: 'LateCallError' },
  );
  assert.deepEqual(requests, []);
});
