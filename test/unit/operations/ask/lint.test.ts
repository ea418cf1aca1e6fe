import assert from 'node:assert/strict';
import { test } from 'node:test';
import { clusterName } from '#shared/eviction/identity.ts';
import { ApiError } from '#shared/kubernetes/http/api-error.ts';
import { lintCluster } from '#shared/operations/ask/lint.ts';
import type { ContextFleet } from '#shared/operations/fleet/fleet.ts';

const spec = {
  containers: [],
  tolerations: [{ key: 'gone', operator: 'Exists', effect: 'NoSchedule' }],
};
const deployment = {
  metadata: { name: 'web', namespace: 'default' },
  spec: { template: { spec } },
};

/** Returns the findings of lint for a cluster with one Deployment and these nodes. */
async function linted(nodes: () => readonly object[]) {
  const objects = {
    async *list(path: string) {
      if (path === '/apis/apps/v1/deployments') yield deployment;
      if (path === '/api/v1/nodes') yield* nodes();
    },
  };
  const fleet = {
    kind: 'context',
    cluster: async () => ({ objects, close() {} }),
  } as unknown as ContextFleet;
  const question = { cluster: clusterName('prod'), matching: { comparisonOperators: false } };
  const { findings, unknown } = await lintCluster(fleet, question, { now: () => 0, progress() {} });
  return { rules: findings.map(({ rule }) => rule), unknown };
}

test('reports a key that no node has, if the nodes could be read', async () => {
  assert.deepEqual(await linted(() => []), { rules: ['unknown-key'], unknown: [] });
  const taints = [{ key: 'gone', effect: 'NoExecute' }];
  assert.deepEqual(await linted(() => [{ spec: { taints } }]), { rules: [], unknown: [] });
});

test("reports no key as unknown if the nodes can't be read, and reports the cause", async () => {
  const { rules, unknown } = await linted(() => {
    throw new ApiError('Nodes are forbidden.', 403, 'Forbidden');
  });
  assert.deepEqual(rules, []);
  assert.deepEqual(unknown, ['/api/v1/nodes cannot be read and is not checked: Nodes are forbidden.']);
});
