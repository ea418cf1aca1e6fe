import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { nodeName } from '#shared/eviction/identity.ts';
import type { KubernetesApi, LivePod } from '#shared/kubernetes/api.ts';
import { LateCallError } from '#shared/kubernetes/http/api-error.ts';
import { type ClusterUnderContract, refusal, STRANGER } from './kubernetes-contract.ts';

/** A cluster under contract that serves the Eviction API. */
export interface BudgetedCluster extends ClusterUnderContract {
  /** Creates a running, ready pod with the label `app`, bound to a node. */
  runPod(name: string, node: string, app: string): Promise<void>;
  /** Sets a disruption budget for the only pod with this label: `minAvailable` 1 blocks its eviction. */
  setBudget(name: string, app: string, minAvailable: 0 | 1): Promise<void>;
}

/** Registers the tests that every implementation of `KubernetesApi.evictPod`, over any cluster, has to pass. */
export function evictionContract(name: string, open: () => Promise<BudgetedCluster>): void {
  describe(`${name} keeps the contract of evictions`, () => {
    let cluster: BudgetedCluster;
    let api: KubernetesApi;
    let made = 0;
    before(async () => {
      cluster = await open();
      api = cluster.api;
    });
    after(() => cluster?.close());

    /** Creates a pod with an `app` label of its own, which is its name; returns it as the cluster shows it. */
    async function aPod(): Promise<LivePod> {
      made += 1;
      const pod = `evicted-${made}`;
      const node = nodeName(`${cluster.namespace}-${pod}`);
      await cluster.createNode(node);
      await cluster.runPod(pod, node, pod);
      return shown(pod);
    }

    async function shown(pod: string): Promise<LivePod> {
      const found = await api.getPod({ namespace: cluster.namespace, name: pod });
      assert.ok(found);
      return found;
    }

    const judged = ({ uid, resourceVersion }: LivePod) => ({ uid, resourceVersion });

    async function assertGoing(pod: LivePod): Promise<void> {
      const now = await api.getPod(pod);
      if (!now) return;
      assert.deepEqual([now.terminating, now.evicted, now.disrupted], [true, true, false]);
    }

    test('evicts a pod without a budget, which the API itself marks', async () => {
      const pod = await aPod();
      assert.deepEqual(await api.evictPod(pod, judged(pod)), { kind: 'evicted' });
      await assertGoing(pod);
    });

    test('leaves a pod unmarked while a budget blocks it, and evicts it afterwards', async () => {
      const pod = await aPod();
      await cluster.setBudget('one', pod.name, 1);
      const answer = await api.evictPod(pod, judged(pod));
      assert.equal(answer.kind, 'blocked');
      assert.match(answer.reason, /budget/);
      assert.deepEqual(await shown(pod.name), pod);
      await cluster.setBudget('one', pod.name, 0);
      assert.deepEqual(await api.evictPod(pod, judged(pod)), { kind: 'evicted' });
      await assertGoing(pod);
    });

    test('blocks a pod with two budgets', async () => {
      const pod = await aPod();
      await cluster.setBudget('first', pod.name, 0);
      await cluster.setBudget('second', pod.name, 0);
      assert.equal((await api.evictPod(pod, judged(pod))).kind, 'blocked');
      assert.deepEqual(await shown(pod.name), pod);
    });

    test('does not evict or change another pod of the same name', async () => {
      const pod = await aPod();
      const { resourceVersion } = pod;
      await assert.rejects(api.evictPod(pod, { uid: STRANGER }), refusal(409));
      await assert.rejects(api.evictPod(pod, { uid: STRANGER, resourceVersion }), refusal(409));
      assert.deepEqual(await shown(pod.name), pod);
    });

    test('does not evict a pod that has changed since the given version', async () => {
      const pod = await aPod();
      await cluster.touchPod(pod.name);
      const changed = await shown(pod.name);
      await assert.rejects(api.evictPod(pod, judged(pod)), refusal(409));
      assert.deepEqual(await shown(pod.name), changed);
    });

    test('rejects a pod that does not exist', async () => {
      const gone = { namespace: cluster.namespace, name: 'gone' };
      await assert.rejects(api.evictPod(gone, { uid: STRANGER }), refusal(404));
    });

    test('sends no request after its deadline', async () => {
      const pod = await aPod();
      await assert.rejects(api.evictPod(pod, judged(pod), Date.now() - 1), LateCallError);
      assert.deepEqual(await shown(pod.name), pod);
    });
  });
}
