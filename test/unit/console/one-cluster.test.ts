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
  const query = { cluster: PROD };
  return {
    pending: (await ask('GET api/pending', query)).rows,
    timeline: await ask('GET api/timeline', query),
    nodes: await ask('GET api/nodes', query),
    stuck: await ask('GET api/stuck', query),
    history: await ask('GET api/history', query),
    audit: await ask('GET api/audit', query),
    policy: await ask('GET api/policy', query),
    stop: await ask('POST api/preview', { ...query, kind: 'stop', reason: 'x' }),
    retry: await ask('POST api/preview', { ...query, kind: 'retry', reason: 'x' }),
  };
}

test('answers about one cluster are the same beside another', async (t) => {
  const alone = await answers(t, { beside: false });
  assert.deepEqual(await answers(t, { beside: true }), alone);
  const { pending, nodes, stuck, history, audit } = alone;
  assert.deepEqual(
    [pending, nodes, stuck, history.entries, audit].map(({ length }) => length),
    [4, 2, 2, 10, 1],
  );
});
