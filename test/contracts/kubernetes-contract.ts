import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { Owner } from '#shared/eviction/facts.ts';
import type { PodRef } from '#shared/eviction/identity.ts';
import { isSameCluster, type NodeName, nodeName, podUid } from '#shared/eviction/identity.ts';
import type { PodEvent } from '#shared/kubernetes/announcement.ts';
import type { KubernetesApi, LivePod, Resource, WatchEvent } from '#shared/kubernetes/api.ts';
import { ApiError, LateCallError } from '#shared/kubernetes/http/api-error.ts';
import { PROOF_NODE } from '#shared/kubernetes/takeover-proof.ts';
import type { LiveTaint, Toleration } from '#shared/taints/taint.ts';
import { NODE_NOT_READY } from '#shared/taints/taint.ts';

/** A cluster under contract: the service's connection to it, and the operations by which a test changes it. */
export interface ClusterUnderContract {
  readonly api: KubernetesApi;
  /** The namespace of the pods. */
  readonly namespace: string;
  /** The duration for which a watch must be requested to receive a bookmark. */
  readonly watchSeconds: number;
  createNode(name: NodeName, taints?: readonly LiveTaint[]): Promise<void>;
  /** Replaces a node's taints, under the name of a field manager. */
  setTaints(node: NodeName, taints: readonly LiveTaint[], manager: string): Promise<void>;
  /** Changes a node's labels. */
  label(node: NodeName): Promise<void>;
  /** Changes a node's status, as its kubelet does. */
  heartbeat(node: NodeName): Promise<void>;
  deleteNode(node: NodeName): Promise<void>;
  /** Creates a pod that is bound to a node. */
  createPod(name: string, spec: NewPod): Promise<void>;
  /** Changes a pod in a way that influences no decision. */
  touchPod(name: string): Promise<void>;
  /** Creates `takeovers/live`; false: the cluster does not support the kind. */
  putTakeover(keys: readonly string[], lapseSeconds: number): Promise<boolean>;
  /** Creates a node's Lease in `kube-node-lease`; false: the cluster does not support the kind. */
  putNodeLease(node: NodeName, spec: object): Promise<boolean>;
  /** Creates a Deployment with `replicas` replicas. */
  createDeployment(name: string, replicas: number): Promise<void>;
  /** Returns the messages of the Events about a pod. */
  eventsAbout(name: string): Promise<readonly string[]>;
  /** Removes all objects that were created here. */
  close(): Promise<void>;
}

export interface NewPod {
  readonly node: NodeName;
  readonly tolerations?: readonly Toleration[];
  /** An existing controller: a node, because the tests create no other objects. */
  readonly owner?: Owner;
}

/** The UID of no pod. */
export const STRANGER = podUid('00000000-0000-4000-8000-000000000000');
const taint = (key: string, more: Partial<LiveTaint> = {}): LiveTaint => ({
  key,
  effect: 'NoExecute',
  ...more,
});

export const refusal = (status: number) => (error: unknown) => {
  assert.ok(error instanceof ApiError, String(error));
  assert.equal(error.status, status, error.message);
  return true;
};

/**
 * Registers the tests that every implementation of `KubernetesApi`, over any cluster, has to pass. `forget` returns a
 * version of nodes from which a watch is no longer possible; a real server forgets versions only in its own time.
 */
export function kubernetesContract<C extends ClusterUnderContract>(
  name: string,
  open: () => Promise<C>,
  forget?: (cluster: C) => Promise<string>,
): void {
  describe(`${name} keeps the contract of a cluster`, () => {
    let cluster: C;
    let api: KubernetesApi;
    let made = 0;
    before(async () => {
      cluster = await open();
      api = cluster.api;
    });
    after(() => cluster?.close());

    async function aNode(...taints: readonly LiveTaint[]): Promise<NodeName> {
      made += 1;
      const node = nodeName(`${cluster.namespace}-${made}`);
      await cluster.createNode(node, taints);
      return node;
    }

    const refTo = (pod: string): PodRef => ({ namespace: cluster.namespace, name: pod });

    /** Creates a pod on a node of its own or on a given one; returns the pod as the cluster shows it. */
    async function aPod(spec: Partial<NewPod> = {}): Promise<LivePod> {
      const node = spec.node ?? (await aNode());
      made += 1;
      const ref = refTo(`pod-${made}`);
      await cluster.createPod(ref.name, { ...spec, node });
      return shown(ref);
    }

    async function shown(ref: PodRef): Promise<LivePod> {
      const pod = await api.getPod(ref);
      assert.ok(pod);
      return pod;
    }

    async function nodeShown(node: NodeName) {
      const live = await api.getNode(node);
      assert.ok(live);
      return live;
    }

    describe('what identifies the cluster', () => {
      test('is the same at each read, also when nodes are added', async () => {
        await aNode();
        const first = await api.uids();
        assert.ok(first.system !== undefined || first.nodes.length > 0);
        await aNode(taint('a'));
        assert.ok(isSameCluster(first, await api.uids()));
      });
    });

    test('answers a ping, and lists no permission as lacking for credentials that have all', async () => {
      await api.ping();
      const watching = { verb: 'watch', resource: 'nodes' } as const;
      assert.deepEqual(await api.lacking([watching, { verb: 'list', resource: 'pods' }]), []);
    });

    describe('getting objects', () => {
      test('returns a node with its taints of all effects, in order', async () => {
        const taints = [taint('b', { value: 'x', effect: 'NoSchedule' }), taint('a')];
        const live = await nodeShown(await aNode(...taints));
        assert.deepEqual(live.taints, taints);
        assert.notEqual(live.resourceVersion, '');
      });

      test('returns the time at which a taint was added, if the taint has it', async () => {
        const timeAdded = Date.UTC(2026, 10, 21, 11, 13, 53);
        const live = await nodeShown(await aNode(taint('a', { timeAdded }), taint('b')));
        assert.deepEqual(live.taints, [taint('a', { timeAdded }), taint('b')]);
      });

      test('returns a pod with its node, its tolerations in order, and its owner', async () => {
        const node = await aNode();
        const tolerations = [{ key: 'a', operator: 'Exists', effect: 'NoExecute', tolerationSeconds: 60n }];
        const owner = { kind: 'Node', name: node };
        const pod = await aPod({ node, tolerations, owner });
        assert.deepEqual([pod.node, pod.tolerations[0], pod.owner], [node, tolerations[0], owner]);
        assert.deepEqual([pod.terminating, pod.disrupted], [false, false]);
        assert.equal((await aPod({ node })).owner, undefined);
      });

      test('returns a recent whole second as the time at which a pod was bound', async () => {
        const { podSince } = await aPod();
        assert.equal(podSince % 1000, 0);
        assert.ok(Math.abs(podSince - Date.now()) < 60_000);
      });

      test('returns undefined for objects that do not exist', async () => {
        assert.equal(await api.getNode(nodeName('nobody-made-this')), undefined);
        assert.equal(await api.getPod(refTo('nobody-made-this')), undefined);
      });
    });

    describe('the pods of a node', () => {
      for (const count of [2, 5]) {
        test(`include the ${count} due pods that exist`, async () => {
          const node = await aNode();
          const pods = [];
          for (let i = 0; i < count; i++) pods.push(await aPod({ node }));
          await aPod();
          const found = await api.podsOnNode(node, [...pods, refTo('gone')]);
          const uids = new Set(found.map(({ uid }) => uid));
          assert.ok(pods.every(({ uid }) => uids.has(uid)));
          assert.equal(uids.size, found.length);
          assert.ok(found.every((pod) => pod.node === node));
        });
      }
    });

    describe('marking', () => {
      test('returns the marked pod', async () => {
        const pod = await aPod();
        const marked = await api.markDisrupted(pod, pod.uid, Date.now());
        assert.deepEqual([marked.uid, marked.disrupted, marked.terminating], [pod.uid, true, false]);
        assert.notEqual(marked.resourceVersion, pod.resourceVersion);
        assert.deepEqual(await shown(pod), marked);
      });

      test('succeeds a second time', async () => {
        const pod = await aPod();
        await api.markDisrupted(pod, pod.uid, Date.now());
        const again = await api.markDisrupted(pod, pod.uid, Date.now() + 5_000);
        assert.deepEqual([again.uid, again.disrupted], [pod.uid, true]);
      });

      test('is rejected for another pod of the same name, which stays unchanged', async () => {
        const pod = await aPod();
        await assert.rejects(api.markDisrupted(pod, STRANGER, Date.now()), refusal(409));
        assert.deepEqual(await shown(pod), pod);
      });

      test('is rejected for a pod that does not exist', async () => {
        await assert.rejects(api.markDisrupted(refTo('gone'), STRANGER, Date.now()), refusal(404));
      });
    });

    describe('deleting', () => {
      const isGoing = async (pod: LivePod) => {
        const now = await api.getPod(pod);
        return now === undefined || now.terminating;
      };

      test('by UID leaves the pod terminating, or deleted', async () => {
        const pod = await aPod();
        await api.deletePod(pod, { uid: pod.uid });
        assert.ok(await isGoing(pod));
      });

      test('by UID and the version of the marked pod does the same', async () => {
        const pod = await aPod();
        const { uid, resourceVersion } = await api.markDisrupted(pod, pod.uid, Date.now());
        await api.deletePod(pod, { uid, resourceVersion });
        assert.ok(await isGoing(pod));
      });

      test('is rejected for another pod of the same name, which stays unchanged', async () => {
        const pod = await aPod();
        await assert.rejects(api.deletePod(pod, { uid: STRANGER }), refusal(409));
        const { resourceVersion } = pod;
        await assert.rejects(api.deletePod(pod, { uid: STRANGER, resourceVersion }), refusal(409));
        assert.deepEqual(await shown(pod), pod);
      });

      test('is rejected for a pod that has changed since the given version, which stays unchanged', async () => {
        const pod = await aPod();
        await cluster.touchPod(pod.name);
        const changed = await shown(pod);
        const { uid, resourceVersion } = pod;
        await assert.rejects(api.deletePod(pod, { uid, resourceVersion }), refusal(409));
        assert.deepEqual(await shown(pod), changed);
      });

      test('is rejected for a pod that does not exist', async () => {
        await assert.rejects(api.deletePod(refTo('gone'), { uid: STRANGER }), refusal(404));
      });

      test('is not requested after its deadline', async () => {
        const pod = await aPod();
        await assert.rejects(api.deletePod(pod, { uid: pod.uid }, Date.now() - 1), LateCallError);
        assert.deepEqual(await shown(pod), pod);
        await api.deletePod(pod, { uid: pod.uid }, Date.now() + 60_000);
        assert.ok(await isGoing(pod));
      });
    });

    describe('the Lease of a node', () => {
      test('does not exist until a kubelet renews it', async () => {
        assert.equal(await api.getNodeLease(await aNode()), undefined);
      });

      test("has the time and duration of its renewal, and the server's time", async () => {
        const node = await aNode();
        const renewedAt = Date.now() - 3_000;
        const renewTime = new Date(renewedAt).toISOString().replace('Z', '999Z');
        if (!(await cluster.putNodeLease(node, { renewTime, leaseDurationSeconds: 40 }))) return;
        const { asOf = 0, ...lease } = (await api.getNodeLease(node)) ?? {};
        assert.deepEqual(lease, { renewedAt, durationMs: 40_000 });
        assert.ok(Math.abs(asOf - Date.now()) < 60_000, String(asOf));
      });

      test('can be empty', async () => {
        const node = await aNode();
        if (!(await cluster.putNodeLease(node, {}))) return;
        const { asOf: _asOf, ...lease } = (await api.getNodeLease(node)) ?? {};
        assert.deepEqual(lease, {});
      });
    });

    describe('the replicas of a workload', () => {
      const ofDeployment = (name: string) =>
        api.getReplicas({ namespace: cluster.namespace, kind: 'Deployment', name });

      test('are the number in its spec', async () => {
        await cluster.createDeployment('counted', 2);
        assert.equal(await ofDeployment('counted'), 2);
      });

      test('are unknown for a missing workload, and for an unsupported kind', async () => {
        assert.equal(await ofDeployment('nobody-made-this'), undefined);
        const { namespace } = cluster;
        assert.equal(await api.getReplicas({ namespace, kind: 'Rollout', name: 'counted' }), undefined);
      });
    });

    describe('a takeover', () => {
      const MINUTE = 60_000;

      test('does not exist by default', async () => {
        assert.equal(await api.getTakeover(), undefined);
      });

      test('is renewed at given times, and stays alive from the first renewal that was not late', async () => {
        if (!(await cluster.putTakeover(['a', 'b'], 60))) return;
        const made = await api.getTakeover();
        assert.ok(made);
        const { resourceVersion: version, ...fresh } = made;
        assert.deepEqual(fresh, { keys: ['a', 'b'], lapseMs: MINUTE });
        const at = Date.UTC(2026, 0, 1) + 250;
        const seen = [];
        for (const moment of [at, at + MINUTE - 1, at + 2 * MINUTE - 1]) {
          const known = await api.getTakeover();
          assert.ok(known);
          await api.renewTakeover(known, moment);
          const { heartbeat, aliveSince } = (await api.getTakeover()) ?? {};
          seen.push([heartbeat, aliveSince]);
        }
        assert.deepEqual(seen, [
          [at, at],
          [at + MINUTE - 1, at],
          [at + 2 * MINUTE - 1, at + 2 * MINUTE - 1],
        ]);
        await assert.rejects(api.renewTakeover({ ...made, resourceVersion: version }, at), refusal(409));
      });

      test('states the reason for a suspended heartbeat, until it is renewed', async () => {
        const known = await api.getTakeover();
        if (!known) return;
        await api.withholdTakeover(known, 'a reason');
        const withheld = await api.getTakeover();
        assert.ok(withheld);
        const { resourceVersion: _, ...fields } = known;
        assert.deepEqual(
          { ...withheld, resourceVersion: '' },
          { ...fields, resourceVersion: '', withheld: 'a reason' },
        );
        await assert.rejects(api.withholdTakeover(known, 'another'), refusal(409));
        await api.renewTakeover(withheld, Date.UTC(2026, 0, 2));
        assert.equal((await api.getTakeover())?.withheld, undefined);
      });

      test('is probed with the taints of a node that is not created', async () => {
        if (!(await api.getTakeover())) return;
        const taints = [
          taint('gpu', { value: 'x', timeAdded: Date.UTC(2026, 0, 1) }),
          taint(NODE_NOT_READY, { effect: 'NoSchedule' }),
        ];
        assert.deepEqual(await api.tryTaints(taints), taints);
        assert.equal(await api.getNode(nodeName(PROOF_NODE)), undefined);
      });
    });

    test('posts an Event once for each key, regardless of retries', async () => {
      const pod = await aPod();
      const event = (key: string, message: string): PodEvent => {
        const { namespace, name: podName } = pod;
        return { pod: { namespace, name: podName }, key, type: 'Normal', reason: 'Contract', message };
      };
      await api.createEvent(event('one', 'first'), Date.now());
      await api.createEvent(event('one', 'first again'), Date.now());
      await api.createEvent(event('two', 'second'), Date.now());
      assert.deepEqual([...(await cluster.eventsAbout(pod.name))].sort(), ['first', 'second']);
    });

    describe('the stamp of a node’s taints', () => {
      test('changes with every change of the taints', async () => {
        const node = await aNode(taint('a'));
        const stamps = [(await nodeShown(node)).taintsStamp];
        // The real server truncates the time to the second, so each change has its own manager.
        for (const [manager, ...taints] of [
          ['one', taint('a', { value: 'x' })],
          ['two'],
          ['three', taint('a', { value: 'x' })],
          ['four', taint('a', { value: 'x' }), taint('b')],
        ] as const) {
          await cluster.setTaints(node, taints, manager);
          stamps.push((await nodeShown(node)).taintsStamp);
        }
        assert.equal(new Set(stamps).size, stamps.length, stamps.join(' '));
      });

      test('does not change with labels and heartbeats', async () => {
        const node = await aNode(taint('a'));
        await cluster.setTaints(node, [taint('b')], 'one');
        const before = await nodeShown(node);
        await cluster.label(node);
        await cluster.heartbeat(node);
        const after = await nodeShown(node);
        assert.notEqual(after.resourceVersion, before.resourceVersion);
        assert.equal(after.taintsStamp, before.taintsStamp);
        assert.notEqual(after.taintsStamp, undefined);
      });
    });

    describe('listing', () => {
      test('returns pages of one version, with each object once', async () => {
        const nodes = [await aNode(), await aNode(), await aNode()];
        const { signal } = new AbortController();
        const names: string[] = [];
        const versions = new Set<string>();
        let next: string | undefined;
        do {
          const page = await api.nodes.list({ limit: 2, signal, ...(next ? { continue: next } : {}) });
          assert.ok(page.items.length <= 2);
          names.push(...page.items.map((node) => node.name));
          versions.add(page.resourceVersion);
          next = page.continue;
        } while (next !== undefined);
        assert.equal(new Set(names).size, names.length);
        assert.ok(nodes.every((node) => names.includes(node)));
        assert.equal(versions.size, 1);
      });

      test('can be limited to one node’s pods, in one page, consistent or at least as new as requested', async () => {
        const node = await aNode();
        await aPod();
        const pods = [await aPod({ node }), await aPod({ node })];
        const versions = [undefined, '0', pods[1]?.resourceVersion].map((notOlderThan) =>
          notOlderThan === undefined ? {} : { notOlderThan },
        );
        for (const version of versions) {
          const { signal } = new AbortController();
          const page = await api.pods.list({ onNode: node, signal, ...version });
          assert.ok(Number(page.resourceVersion) >= Number(pods[1]?.resourceVersion));
          assert.equal('continue' in page, false);
          const byName = [...page.items].sort((a, b) => (a.name < b.name ? -1 : 1));
          assert.deepEqual(byName, pods);
        }
      });

      test("rejects a version newer than the server's with 504, and a retry interval", async () => {
        const page = await all(api.nodes);
        const notOlderThan = String(Number(page.resourceVersion) + 1_000_000);
        const list = api.nodes.list({ notOlderThan, signal: new AbortController().signal });
        await assert.rejects(list, (error) => {
          assert.ok(error instanceof ApiError);
          assert.deepEqual([error.status, error.causes], [504, ['ResourceVersionTooLarge']]);
          assert.equal(error.retryAfterSeconds, 1);
          return true;
        });
      });

      test('returns the same objects as getting', async () => {
        const pod = await aPod();
        const pods = await all(api.pods);
        assert.deepEqual(
          pods.items.find(({ uid }) => uid === pod.uid),
          pod,
        );
      });
    });

    describe('watching', () => {
      test('yields the changes after a version, in order', async () => {
        const node = await aNode();
        const { resourceVersion } = await all(api.nodes);
        await cluster.setTaints(node, [taint('a')], 'one');
        const tainted = await nodeShown(node);
        await cluster.deleteNode(node);
        const received: string[] = [];
        for await (const event of watch(api.nodes, resourceVersion)) {
          if (!('object' in event) || event.object.name !== node) continue;
          received.push(event.kind);
          if (event.kind === 'delete') break;
          assert.deepEqual(event.object, tainted);
        }
        assert.deepEqual(received, ['upsert', 'delete']);
      });

      test('reports its progress by bookmarks', async () => {
        const { resourceVersion } = await all(api.nodes);
        const { resourceVersion: changed } = await nodeShown(await aNode());
        const marks: string[] = [];
        for await (const event of watch(api.nodes, resourceVersion)) {
          if (event.kind !== 'bookmark') continue;
          marks.push(event.resourceVersion);
          break;
        }
        assert.equal(marks.length, 1);
        assert.ok(Number(marks[0]) >= Number(changed));
      });

      test('yields the same pods as getting, as they change', async () => {
        const { resourceVersion } = await all(api.pods);
        const pod = await aPod();
        const received: LivePod[] = [];
        for await (const event of watch(api.pods, resourceVersion)) {
          if (event.kind !== 'upsert' || event.object.uid !== pod.uid) continue;
          received.push(event.object);
          if (event.object.disrupted) break;
          await api.markDisrupted(pod, pod.uid, Date.now());
        }
        assert.deepEqual(received, [pod, await shown(pod)]);
      });

      test('can begin with all existing objects, and marks their end', async () => {
        const nodes = [await aNode(), await aNode()];
        const { signal } = new AbortController();
        const received = new Set<NodeName>();
        for await (const event of api.nodes.watch({ initial: true, timeoutSeconds: 10, signal })) {
          assert.notEqual(event.kind, 'delete');
          if (event.kind === 'upsert') received.add(event.object.name);
          if (event.kind !== 'bookmark' || !event.initialEnd) continue;
          assert.ok(Number(event.resourceVersion) > 0);
          break;
        }
        assert.ok(nodes.every((node) => received.has(node)));
      });

      test('can be limited to one node’s pods', async () => {
        const node = await aNode();
        const { resourceVersion } = await all(api.pods);
        await aPod();
        const pod = await aPod({ node });
        const { signal } = new AbortController();
        const options = { onNode: node, resourceVersion, timeoutSeconds: cluster.watchSeconds, signal };
        for await (const event of api.pods.watch(options)) {
          if (!('object' in event)) continue;
          assert.deepEqual(event, { kind: 'upsert', object: pod });
          break;
        }
      });

      test('can skip the pods of nodes that are not followed, and reports its progress', async () => {
        const node = await aNode();
        const { resourceVersion } = await all(api.pods);
        const other = await aPod();
        const pod = await aPod({ node });
        const { signal } = new AbortController();
        const follows = (name: NodeName) => name === node;
        const passed: string[] = [];
        const options = { follows, resourceVersion, timeoutSeconds: cluster.watchSeconds, signal };
        for await (const event of api.pods.watch(options)) {
          if (event.kind === 'passed') passed.push(event.resourceVersion);
          if (!('object' in event)) continue;
          assert.deepEqual(event, { kind: 'upsert', object: pod });
          break;
        }
        assert.ok(passed.includes(other.resourceVersion));
      });

      test('ends when it is aborted', async () => {
        const { resourceVersion } = await all(api.nodes);
        const abort = new AbortController();
        setImmediate(() => abort.abort());
        for await (const _ of watch(api.nodes, resourceVersion, abort.signal));
        assert.ok(abort.signal.aborted);
      });

      if (forget) {
        test('rejects a forgotten version with 410', async () => {
          const events = watch(api.nodes, await forget(cluster));
          await assert.rejects(async () => {
            for await (const _ of events);
          }, refusal(410));
        });
      }
    });

    const watch = <T>(
      resource: Resource<T>,
      resourceVersion: string,
      signal = new AbortController().signal,
    ): AsyncIterable<WatchEvent<T>> =>
      resource.watch({ resourceVersion, timeoutSeconds: cluster.watchSeconds, signal });
  });
}

/** Lists all objects of a kind in one page. */
const all = <T>(resource: Resource<T>) =>
  resource.list({ limit: 10_000, signal: new AbortController().signal });
