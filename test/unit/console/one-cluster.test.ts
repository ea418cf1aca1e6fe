import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { clusterName } from '#shared/eviction/identity.ts';
import { NOW } from '#test/contracts/partition-builders.ts';
import { makeBusy } from '#test/world/busy-cluster.ts';
import { servedConsole } from './served-console.ts';

const [PROD, BESIDE] = [clusterName('prod'), clusterName('beside')];

/** The answers about `prod`. `beside`: the fleet has another cluster with other numbers. */
async function answers(t: TestContext, { beside }: { readonly beside: boolean }) {
  const served = await servedConsole(t, { clusters: beside ? [BESIDE, PROD] : [PROD] });
  if (beside) await makeBusy(served, BESIDE, 3, NOW);
  await makeBusy(served, PROD, 2, NOW);
  const { ask } = await served.enter();
  const of = { cluster: PROD };
  return {
    pending: (await ask('GET api/pending', of)).rows,
    timeline: await ask('GET api/timeline', of),
    nodes: await ask('GET api/nodes', of),
    stuck: await ask('GET api/stuck', of),
    history: await ask('GET api/history', of),
    audit: await ask('GET api/audit', of),
    policy: await ask('GET api/policy', of),
    stop: await ask('POST api/preview', { ...of, kind: 'stop', reason: 'x' }),
    retry: await ask('POST api/preview', { ...of, kind: 'retry', reason: 'x' }),
  };
}

test('answers about one cluster are the same beside another', async (t) => {
  const alone = await answers(t, { beside: false });
  assert.deepEqual(await answers(t, { beside: true }), alone);
  const { pending, nodes, stuck, history, audit } = alone;
  assert.deepEqual(
    [pending, nodes, stuck, history.entries, audit].map(({ length }) => length),
    [4, 2, 2, 8, 1],
  );
});
