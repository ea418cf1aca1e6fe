import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { clusterName } from '#shared/eviction/identity.ts';
import { askWhatIf } from '#shared/operations/ask/what-if.ts';
import type { ContextFleet } from '#shared/operations/fleet/fleet.ts';
import { liveCluster } from '#shared/operations/fleet/live-cluster.ts';
import { type Answer, json, scriptedServer, status } from '#test/unit/kubernetes/scripted-server.ts';
import { DrivenClock } from '#test/world/driven-clock.ts';

const PROD = clusterName('prod');
const NOW = Date.UTC(2026, 10, 21, 12);
const labels = { app: 'web' };
const list = (...items: readonly object[]): Answer => json({ metadata: { resourceVersion: '1' }, items });
const ANSWERS: Readonly<Record<string, Answer>> = {
  '/api/v1/nodes': list({ metadata: { name: 'node-1', uid: 'n' }, spec: {}, status: {} }),
  '/api/v1/pods': list(
    ...['web-0', 'web-1'].map((name) => ({
      metadata: {
        name,
        namespace: 'shop',
        uid: `uid-${name}`,
        labels,
        creationTimestamp: '2026-11-21T00:00:00Z',
      },
      spec: { nodeName: 'node-1' },
      status: { conditions: [{ type: 'Ready', status: name === 'web-0' ? 'True' : 'False' }] },
    })),
  ),
  '/apis/policy/v1/namespaces/shop/poddisruptionbudgets': list({
    metadata: { name: 'web', namespace: 'shop' },
    spec: { selector: { matchLabels: labels } },
    status: { disruptionsAllowed: 1, expectedPods: 2 },
  }),
};

const SUCCESS = json({ kind: 'Status', status: 'Success' });

/** Asks about a taint on node-1 in a cluster that gives this answer to evictions. */
async function previewed(t: TestContext, evictions: Answer) {
  const { host, requests } = await scriptedServer(t, (response, request) => {
    const [path = ''] = request.url.split('?');
    const answer = request.method === 'POST' ? evictions : ANSWERS[path];
    (answer ?? status(404, 'NotFound', 'not found'))(response, request);
  });
  const clock = new DrivenClock(NOW);
  const connection = {
    host,
    requestOptions: async () => ({ server: new URL(`http://${host}`), headers: {} }),
  };
  const fleet: ContextFleet = {
    kind: 'context',
    where: 'context prod',
    clusters: async () => [PROD],
    manages: async () => true,
    cluster: async () => liveCluster(connection, clock),
    close: () => undefined,
  };
  const answer = await askWhatIf(
    fleet,
    {
      cluster: PROD,
      taint: { key: 'maintenance', effect: 'NoExecute' },
      nodes: { names: ['node-1'] },
      matching: { comparisonOperators: false },
    },
    { clock, progress: () => undefined },
  );
  return { ...answer, requests };
}

const forbidden = (causes: readonly object[]) =>
  json({ kind: 'Status', reason: 'Forbidden', message: 'no', code: 403, details: { causes } }, 403);

for (const [name, answer, source, unknown] of [
  ['allowed', SUCCESS, 'eviction-api', []],
  [
    'allowed in a namespace that is being deleted, which the service does not ask there',
    forbidden([{ reason: 'NamespaceTerminating' }]),
    'eviction-api',
    [],
  ],
  [
    'judged by the budget once the API is forbidden',
    forbidden([]),
    'status',
    [/cannot be used in namespace shop,/],
  ],
  ['judged by the budget when the API fails', status(500, 'InternalError', 'no'), 'status', []],
] as const)
  test(`evictions are ${name}`, async (t) => {
    const { budgets, unknown: sentences } = await previewed(t, answer);
    assert.deepEqual(
      [budgets[0]?.source, budgets[0]?.blocked, sentences.length],
      [source, 0, unknown.length],
    );
    for (const [index, words] of unknown.entries()) assert.match(sentences[index] ?? '', words);
  });

test('asks for evictions only by dry runs, in both forms of the API, of the pods that it read', async (t) => {
  const { budgets, requests } = await previewed(t, SUCCESS);
  assert.deepEqual(
    budgets.map(({ evicted, together }) => [evicted, together]),
    [[2, 1]],
  );
  const writes = requests.filter(({ method }) => method !== 'GET');
  assert.deepEqual(
    writes
      .map(({ method, url, body }) => ({ line: `${method} ${url}`, body: JSON.parse(body) }))
      .sort((a, b) => a.line.localeCompare(b.line)),
    ['web-0', 'web-1'].map((name) => ({
      line: `POST /api/v1/namespaces/shop/pods/${name}/eviction?dryRun=All`,
      body: {
        apiVersion: 'policy/v1',
        kind: 'Eviction',
        metadata: { namespace: 'shop', name },
        deleteOptions: { dryRun: ['All'], preconditions: { uid: `uid-${name}` } },
      },
    })),
  );
});
