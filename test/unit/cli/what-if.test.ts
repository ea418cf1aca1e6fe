import assert from 'node:assert/strict';
import { join } from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import { ApiError } from '#shared/kubernetes/http/api-error.ts';
import type { ClusterObjects } from '#shared/operations/fleet/cluster-objects.ts';
import type { LiveCluster } from '#shared/operations/fleet/live-cluster.ts';
import { commandLine } from './command-line.ts';

const OWNERS: Readonly<Record<string, object | undefined>> = {
  web: { apiVersion: 'apps/v1', kind: 'ReplicaSet', name: 'web-1' },
  static: { apiVersion: 'v1', kind: 'Node', name: 'node-1' },
  bare: undefined,
};
const PODS = Object.entries(OWNERS).map(([name, owner]) => ({
  metadata: {
    name,
    namespace: 'default',
    uid: name,
    labels: { app: name },
    creationTimestamp: '2026-11-21T00:00:00Z',
    ...(owner ? { ownerReferences: [{ ...owner, controller: true }] } : {}),
  },
  spec: { nodeName: 'node-1', tolerations: owner ? [] : [{ key: 'level', operator: 'Gt', value: '3' }] },
  status: { conditions: [{ type: 'Ready', status: 'True' }] },
}));
const BUDGET = {
  metadata: { name: 'web', namespace: 'default' },
  spec: { selector: { matchLabels: { app: 'web' } } },
  status: { disruptionsAllowed: 0, expectedPods: 1 },
};

/** A command line on a cluster whose node-1 has three pods, and whose API forbids paths with one of these words. */
function whatIf(t: TestContext, ...forbidden: readonly string[]) {
  const check = (path: string) => {
    if (forbidden.some((word) => path.includes(word)))
      throw new ApiError(`${path} is forbidden.`, 403, 'Forbidden');
  };
  const objects: Pick<ClusterObjects, 'get' | 'list' | 'tryCreate'> = {
    async get(path) {
      check(path);
      return undefined;
    },
    async *list(path) {
      check(path);
      if (path.endsWith('/nodes')) yield { metadata: { name: 'node-1', uid: 'n' }, spec: {}, status: {} };
      else yield* path.endsWith('/pods') ? PODS : [BUDGET];
    },
    async tryCreate(path) {
      check(path);
      return {};
    },
  };
  const live = { objects, close: () => undefined } as unknown as LiveCluster;
  const { run } = commandLine(t, { cluster: async () => live });
  return (taint: string, nodes: string, ...more: readonly string[]) =>
    run('what-if', 'prod', '--taint', taint, '--nodes', nodes, ...more);
}

describe('taintward what-if', () => {
  test('words its answers with and without permissions as recorded', async (t) => {
    let text = '';
    for (const forbidden of [[], ['/eviction'], ['/replicasets/', 'budgets', '/eviction']]) {
      const answer = await whatIf(t, ...forbidden)('maintenance:NoExecute', 'node-1', '-o', 'wide');
      text += `# Forbidden: ${forbidden.join(', ') || 'nothing'}\n${answer}\n`;
    }
    t.assert.fileSnapshot(text, join(import.meta.dirname, 'what-if.txt'), { serializers: [String] });
  });

  test('counts a toleration that compares only with --comparison-operators', async (t) => {
    const preview = async (...more: readonly string[]) =>
      JSON.parse(await whatIf(t)('level=5:NoExecute', ' node-1', '-o', 'json', ...more)).keep;
    assert.equal(await preview('--comparison-operators'), 1 + (await preview()));
  });

  test('rejects a taint that evicts nothing, and a choice of no node', async (t) => {
    const preview = whatIf(t);
    await assert.rejects(preview('maintenance:NoSchedule', 'node-1'), {
      message:
        'Taint maintenance:NoSchedule evicts no pods. Specify the effect NoExecute, or a taint of treatAsNoExecute in the policy.',
    });
    await assert.rejects(preview('maintenance:NoExecute', 'node-9'), {
      message:
        'Node "node-9" not found. Specify node names as in kubectl get nodes, or labels such as team=web.',
    });
    for (const labels of ['zone=a', 'example.com/zone', 'zone in (a)'])
      await assert.rejects(preview('maintenance:NoExecute', labels), {
        message: 'No node matches these labels. Run "kubectl get nodes --show-labels".',
      });
  });
});
