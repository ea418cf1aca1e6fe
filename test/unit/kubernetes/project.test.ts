import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { ApiError } from '#shared/kubernetes/http/api-error.ts';
import { parseInt64Json } from '#shared/kubernetes/http/api-json.ts';
import { Interner, projectNode, projectPod } from '#shared/kubernetes/project.ts';

const META = {
  name: 'web-0',
  namespace: 'shop',
  uid: '7d1f',
  resourceVersion: '42',
  generation: 2,
  creationTimestamp: '2026-11-21T11:00:00Z',
};

test('reads the fields of a bound pod that decisions need', () => {
  const pod = projectPod({
    metadata: META,
    spec: { nodeName: 'n1', tolerations: [{ key: 'a', operator: 'Exists', tolerationSeconds: 300 }] },
    status: {
      conditions: [
        { type: 'Ready', status: 'True', lastTransitionTime: '2026-11-21T11:09:00Z' },
        { type: 'PodScheduled', status: 'True', lastTransitionTime: '2026-11-21T11:05:00Z' },
      ],
    },
  });
  assert.deepEqual(pod, {
    uid: '7d1f',
    namespace: 'shop',
    name: 'web-0',
    resourceVersion: '42',
    generation: 2,
    node: 'n1',
    tolerations: [{ key: 'a', operator: 'Exists', tolerationSeconds: 300n }],
    podSince: Date.UTC(2026, 10, 21, 11, 5),
    terminating: false,
    disrupted: false,
  });
});

test('reads no node of an unbound pod and uses its creation time', () => {
  const pod = projectPod({
    metadata: META,
    spec: { nodeName: '' },
    status: {
      conditions: [{ type: 'PodScheduled', status: 'False', lastTransitionTime: '2026-11-21T11:05:00Z' }],
    },
  });
  assert.equal(pod.node, undefined);
  assert.equal(pod.podSince, Date.UTC(2026, 10, 21, 11));
});

test('reads a pod with a deletion time as terminating', () => {
  assert.equal(
    projectPod({ metadata: { ...META, deletionTimestamp: '2026-11-21T12:00:00Z' } }).terminating,
    true,
  );
});

test("reads only a true DisruptionTarget with the taint manager's reason as disrupted", () => {
  const disrupted = (status: string, reason: string) =>
    projectPod({ metadata: META, status: { conditions: [{ type: 'DisruptionTarget', status, reason }] } })
      .disrupted;
  assert.equal(disrupted('True', 'DeletionByTaintManager'), true);
  assert.equal(disrupted('False', 'DeletionByTaintManager'), false);
  assert.equal(disrupted('True', 'PreemptionByScheduler'), false);
});

test('distinguishes pods that the Eviction API evicted', () => {
  const conditions = [{ type: 'DisruptionTarget', status: 'True', reason: 'EvictionByEvictionAPI' }];
  const { disrupted, evicted } = projectPod({ metadata: META, status: { conditions } });
  assert.deepEqual([disrupted, evicted], [false, true]);
});

describe('the deleter of a terminating pod', () => {
  const field = 'k:{"type":"DisruptionTarget"}';
  const announced = (manager: string) => ({
    manager,
    subresource: 'status',
    fieldsV1: { 'f:status': { 'f:conditions': { [field]: { 'f:reason': {} } } } },
  });
  const terminating = (managedFields: unknown, reason = 'DeletionByTaintManager') =>
    projectPod({
      metadata: {
        ...META,
        deletionTimestamp: '2026-11-21T12:00:30Z',
        deletionGracePeriodSeconds: 30,
        managedFields,
      },
      status: { conditions: [{ type: 'DisruptionTarget', status: 'True', reason }] },
    }).deleted;
  const at = Date.UTC(2026, 10, 21, 12);

  test('is another taint manager if another one announced the disruption', () => {
    const kubelet = { manager: 'kubelet', fieldsV1: { 'f:status': { 'f:phase': {} } } };
    assert.deepEqual(terminating([kubelet, announced('kube-controller-manager')]), {
      at,
      by: 'taint-manager',
    });
  });

  test('is absent if Taintward announced the disruption, or no manager is recorded', () => {
    assert.equal(terminating([announced('taintward')]), undefined);
    assert.equal(terminating([announced('taintward-prod')]), undefined);
    assert.equal(terminating([announced('kube-controller-manager'), announced('taintward')]), undefined);
    assert.equal(terminating(undefined), undefined);
  });

  test('is another client without an announcement of a taint manager, and absent behind the Eviction API', () => {
    assert.deepEqual(terminating([announced('scheduler')], 'PreemptionByScheduler'), { at, by: 'other' });
    assert.equal(terminating([announced('kube-apiserver')], 'EvictionByEvictionAPI'), undefined);
  });

  test('is absent if the pod does not terminate', () => {
    assert.equal(projectPod({ metadata: META }).deleted, undefined);
  });
});

test('shares one frozen object between equal toleration lists only', () => {
  const tolerations = (list: unknown) =>
    projectPod({ metadata: META, spec: { tolerations: list } }).tolerations;
  const one = tolerations([{ key: 'a', value: '', operator: 'Exists' }]);
  assert.equal(tolerations([{ key: 'a', operator: 'Exists' }]), one);
  assert.ok(Object.isFrozen(one) && Object.isFrozen(one[0]));
  assert.notEqual(tolerations([{ key: 'a', operator: 'Exists', tolerationSeconds: 0 }]), one);
  assert.notEqual(tolerations([{ key: 'aExists' }]), one);
  assert.equal(tolerations(undefined), tolerations([]));
});

test('reads toleration seconds exactly over the whole of int64', () => {
  for (const seconds of ['9223372036854775807', '-9223372036854775808', '9007199254740993', '0', '-1']) {
    const pod = projectPod(
      parseInt64Json(
        JSON.stringify({ metadata: META, spec: { tolerations: [{ tolerationSeconds: 0 }] } }).replace(
          '"tolerationSeconds":0',
          `"tolerationSeconds":${seconds}`,
        ),
      ),
    );
    assert.deepEqual(pod.tolerations, [{ tolerationSeconds: BigInt(seconds) }]);
  }
});

test('reads the taints of all effects of a node, in order', () => {
  assert.deepEqual(
    projectNode({
      metadata: { name: 'n1', resourceVersion: '7' },
      spec: {
        taints: [
          { key: 'b', value: 'x', effect: 'NoSchedule', timeAdded: '2026-11-21T11:00:00Z' },
          { key: 'a', effect: 'NoExecute' },
        ],
      },
    }),
    {
      name: 'n1',
      resourceVersion: '7',
      taints: [
        { key: 'b', value: 'x', effect: 'NoSchedule', timeAdded: Date.UTC(2026, 10, 21, 11) },
        { key: 'a', effect: 'NoExecute' },
      ],
    },
  );
});

describe('the stamp of taints', () => {
  const stamp = (...managedFields: readonly unknown[]) =>
    projectNode({ metadata: { name: 'n1', managedFields } }).taintsStamp;
  const entry = (manager: string, spec: object, more: object = {}) => ({
    manager,
    operation: 'Update',
    time: '2026-11-21T11:00:00Z',
    fieldsV1: { 'f:spec': spec },
    ...more,
  });

  test('names their last writer and time', () => {
    assert.equal(
      stamp(entry('kubelet', { 'f:podCIDR': {} }), entry('kubectl-taint', { 'f:taints': {} })),
      'kubectl-taint@2026-11-21T11:00:00Z',
    );
  });

  test('names all owners in a stable order', () => {
    const [one, two] = [entry('one', { 'f:taints': {} }), entry('two', { 'f:taints': { '.': {} } })];
    assert.equal(stamp(two, one), 'one@2026-11-21T11:00:00Z,two@2026-11-21T11:00:00Z');
    assert.equal(stamp(one, two), stamp(two, one));
  });

  test('is absent without owners, or with owners of the status only', () => {
    assert.equal(stamp(), undefined);
    assert.equal(stamp(entry('kubelet', { 'f:podCIDR': {} })), undefined);
    assert.equal(stamp(entry('kubelet', { 'f:taints': {} }, { subresource: 'status' })), undefined);
    assert.equal(stamp(null, 'x', { fieldsV1: 'x' }, { fieldsV1: { 'f:spec': null } }), undefined);
  });
});

test('reads the controller of a pod as its owner', () => {
  const owner = (...ownerReferences: readonly unknown[]) =>
    projectPod({ metadata: { ...META, ownerReferences } }).owner;
  const set = { apiVersion: 'apps/v1', kind: 'ReplicaSet', name: 'web-6d4', uid: 'x' };
  assert.deepEqual(owner({ ...set, name: 'other' }, { ...set, controller: true }), {
    kind: 'ReplicaSet',
    name: 'web-6d4',
  });
  assert.equal(owner(set), undefined);
  assert.equal(owner(), undefined);
  // No message could name an owner without a kind or a name.
  for (const lacking of [{ kind: null }, { kind: '' }, { name: 7 }])
    assert.equal(owner({ ...set, controller: true, ...lacking }), undefined);
  assert.equal(owner({ ...set, controller: true }), owner({ ...set, controller: true }));
});

test('requires the fields of every stored object', () => {
  for (const field of ['name', 'namespace', 'uid', 'creationTimestamp']) {
    assert.throws(
      () => projectPod({ metadata: { ...META, [field]: undefined } }),
      (error) =>
        error instanceof ApiError && error.status === 0 && error.message.includes(`metadata.${field}`),
    );
  }
  for (const nothing of [undefined, null, 'x', 1, [], {}]) {
    assert.throws(() => projectNode(nothing), ApiError);
    assert.throws(() => projectPod(nothing), ApiError);
  }
});

test('rejects names and UIDs that no API server issues, because keys, paths, and lines contain them', () => {
  const odd = ['prod#n1', '..', 'a/b', 'a b', '\u001b[2J', 'a\nb', '-a', 'ä', 'x'.repeat(254)];
  for (const name of odd) {
    assert.throws(() => projectNode({ metadata: { name } }), /without a metadata.name that is one/);
    for (const field of ['name', 'namespace', 'uid']) {
      assert.throws(
        () => projectPod({ metadata: { ...META, [field]: name } }),
        new RegExp(`without a metadata.${field} that is one`),
      );
    }
  }
});

test('derives nothing but a migration from annotations', () => {
  const annotations = {
    'taintward.dev/hold': 'true',
    'taintward.dev/tolerationSeconds': '9999',
    'scheduler.alpha.kubernetes.io/tolerations': '[{"operator":"Exists"}]',
    'scheduler.alpha.kubernetes.io/taints': '[{"key":"a","effect":"NoExecute"}]',
  };
  assert.deepEqual(projectPod({ metadata: { ...META, annotations } }), {
    ...projectPod({ metadata: META }),
    annotations,
  });
  assert.deepEqual(projectNode({ metadata: { ...META, annotations } }), projectNode({ metadata: META }));
  // This annotation is used only in messages.
  const moved = { 'descheduler.alpha.kubernetes.io/eviction-in-progress': 'kubevirt' };
  assert.deepEqual(projectPod({ metadata: { ...META, annotations: moved } }), {
    ...projectPod({ metadata: META }),
    annotations: moved,
    moving: true,
  });
});

test('keeps annotations with values by which policy can select pods, and no longer ones', () => {
  const annotations = {
    'example.com/longest': 'x'.repeat(63),
    'example.com/empty': '',
    'example.com/longer': 'x'.repeat(64),
    'kubectl.kubernetes.io/last-applied-configuration': JSON.stringify({
      spec: { password: 'x'.repeat(99) },
    }),
  };
  const kept = Object.entries(annotations).slice(0, 2);
  assert.deepEqual(projectPod({ metadata: { ...META, annotations } }).annotations, Object.fromEntries(kept));
  assert.equal(
    Object.hasOwn(projectPod({ metadata: { ...META, annotations: { a: 'x'.repeat(64) } } }), 'annotations'),
    false,
  );
});

test('reads the priority class', () => {
  const spec = { priorityClassName: 'system-node-critical' };
  assert.equal(projectPod({ metadata: META, spec }).priorityClassName, spec.priorityClassName);
  assert.equal(Object.hasOwn(projectPod({ metadata: META, spec: {} }), 'priorityClassName'), false);
});

test('reads fields of unexpected types as absent', () => {
  const pod = projectPod({
    metadata: { ...META, generation: '2', resourceVersion: 3 },
    spec: { nodeName: 5, tolerations: { key: 'a' } },
    status: { conditions: [null, 'x', { type: 'PodScheduled', status: true }] },
  });
  assert.deepEqual([pod.generation, pod.resourceVersion, pod.node, pod.tolerations], [0, '', undefined, []]);
});

describe('an interner', () => {
  test('returns the same object for the same key', () => {
    const interner = new Interner<object>(10);
    const first = interner.get('a', () => ({}));
    assert.equal(
      interner.get('a', () => assert.fail('made twice')),
      first,
    );
    assert.notEqual(
      interner.get('b', () => ({})),
      first,
    );
  });

  test('never exceeds its limit', () => {
    const interner = new Interner<string>(2);
    let made = 0;
    const get = (key: string) =>
      interner.get(key, () => {
        made += 1;
        return key;
      });
    for (const key of ['a', 'b', 'c', 'c', 'a']) assert.equal(get(key), key);
    assert.equal(made, 4);
  });

  test('limits the memory for long keys', () => {
    const interner = new Interner<string>(1_000_000);
    const large = 'x'.repeat(100_000_000);
    const kept = () => interner.get('a', () => 'anew') === 'first';
    interner.get('a', () => 'first');
    for (const start of ['a', 'b']) interner.get(`${start}${large}`, () => start);
    assert.ok(kept());
    interner.get(`c${large}`, () => 'c');
    assert.ok(!kept());
  });
});

test('clamps times before 1970 in taints and conditions to the epoch', () => {
  const timeAdded = '1923-01-01T00:00:00Z';
  const { taints } = projectNode({
    metadata: { name: 'n1' },
    spec: { taints: [{ key: 'a', effect: 'NoExecute', timeAdded }] },
  });
  assert.deepEqual(taints, [{ key: 'a', effect: 'NoExecute', timeAdded: 0 }]);
  const conditions = [{ type: 'PodScheduled', status: 'True', lastTransitionTime: timeAdded }];
  assert.equal(projectPod({ metadata: META, status: { conditions } }).podSince, 0);
  assert.equal(projectPod({ metadata: { ...META, creationTimestamp: timeAdded } }).podSince, 0);
});

test('ignores a taint without a key', () => {
  const taints = [{ effect: 'NoExecute' }, { key: 'a', effect: 'NoExecute' }];
  const node = projectNode({ metadata: { name: 'n1' }, spec: { taints } });
  assert.deepEqual(node.taints, [{ key: 'a', effect: 'NoExecute' }]);
});
