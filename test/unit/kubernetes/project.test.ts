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

/** A pod with this metadata besides the necessary, and these other parts. */
const aPod = (metadata: object = {}, rest: object = {}) =>
  projectPod({ metadata: { ...META, ...metadata }, ...rest });
const tolerating = (tolerations: unknown) => aPod({}, { spec: { tolerations } }).tolerations;
const withCondition = (condition: object) => ({ status: { conditions: [condition] } });
const tainted = (...taints: readonly object[]) =>
  projectNode({ metadata: { name: 'n1', resourceVersion: '7' }, spec: { taints } });
const TAINT = { key: 'a', effect: 'NoExecute' };

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
  const unscheduled = { type: 'PodScheduled', status: 'False', lastTransitionTime: '2026-11-21T11:05:00Z' };
  const pod = aPod({}, { spec: { nodeName: '' }, ...withCondition(unscheduled) });
  assert.deepEqual([pod.node, pod.podSince], [undefined, Date.UTC(2026, 10, 21, 11)]);
});

test('reads a pod with a deletion time as terminating', () => {
  assert.equal(aPod({ deletionTimestamp: '2026-11-21T12:00:00Z' }).terminating, true);
});

test("reads only a true DisruptionTarget with the taint manager's reason as disrupted, apart from evicted pods", () => {
  for (const [status, reason, expected] of [
    ['True', 'DeletionByTaintManager', [true, undefined]],
    ['False', 'DeletionByTaintManager', [false, undefined]],
    ['True', 'PreemptionByScheduler', [false, undefined]],
    ['True', 'EvictionByEvictionAPI', [false, true]],
  ] as const) {
    const { disrupted, evicted } = aPod({}, withCondition({ type: 'DisruptionTarget', status, reason }));
    assert.deepEqual([disrupted, evicted], expected, `${status} ${reason}`);
  }
});

describe('the deleter of a terminating pod', () => {
  const field = 'k:{"type":"DisruptionTarget"}';
  const announced = (manager: string) => ({
    manager,
    subresource: 'status',
    fieldsV1: { 'f:status': { 'f:conditions': { [field]: { 'f:reason': {} } } } },
  });
  const terminating = (managedFields: unknown, reason = 'DeletionByTaintManager') =>
    aPod(
      { deletionTimestamp: '2026-11-21T12:00:30Z', deletionGracePeriodSeconds: 30, managedFields },
      withCondition({ type: 'DisruptionTarget', status: 'True', reason }),
    ).deleted;
  const at = Date.UTC(2026, 10, 21, 12);

  const kubelet = { manager: 'kubelet', fieldsV1: { 'f:status': { 'f:phase': {} } } };
  const [ours, builtIn] = [announced('taintward'), announced('kube-controller-manager')];

  test('is another taint manager if another one announced the disruption', () => {
    assert.deepEqual(terminating([kubelet, builtIn]), { at, by: 'taint-manager' });
  });

  test('is absent if Taintward announced the disruption, or no manager is recorded', () => {
    for (const managers of [[ours], [announced('taintward-prod')], [builtIn, ours], undefined])
      assert.equal(terminating(managers), undefined);
  });

  test('is another client without an announcement of a taint manager, and absent behind the Eviction API', () => {
    assert.deepEqual(terminating([announced('scheduler')], 'PreemptionByScheduler'), { at, by: 'other' });
    assert.equal(terminating([announced('kube-apiserver')], 'EvictionByEvictionAPI'), undefined);
  });

  test('is absent if the pod does not terminate', () => {
    assert.equal(aPod().deleted, undefined);
  });
});

test('shares one frozen object between equal toleration lists only', () => {
  const one = tolerating([{ key: 'a', value: '', operator: 'Exists' }]);
  assert.equal(tolerating([{ key: 'a', operator: 'Exists' }]), one);
  assert.ok(Object.isFrozen(one) && Object.isFrozen(one[0]));
  assert.notEqual(tolerating([{ key: 'a', operator: 'Exists', tolerationSeconds: 0 }]), one);
  assert.notEqual(tolerating([{ key: 'aExists' }]), one);
  assert.equal(tolerating(undefined), tolerating([]));
});

test('reads toleration seconds exactly over the whole of int64', () => {
  for (const seconds of ['9223372036854775807', '-9223372036854775808', '9007199254740993', '0', '-1']) {
    const json = parseInt64Json(`[{"tolerationSeconds":${seconds}}]`);
    assert.deepEqual(tolerating(json), [{ tolerationSeconds: BigInt(seconds) }]);
  }
});

test('reads the taints of all effects of a node, in order, and none without a key', () => {
  const other = { key: 'b', value: 'x', effect: 'NoSchedule' };
  const timeAdded = '2026-11-21T11:00:00Z';
  assert.deepEqual(tainted({ ...other, timeAdded }, { effect: 'NoExecute' }, TAINT), {
    name: 'n1',
    resourceVersion: '7',
    taints: [{ ...other, timeAdded: Date.UTC(2026, 10, 21, 11) }, TAINT],
  });
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

  const taints = { 'f:taints': {} };
  const kubelet = entry('kubelet', { 'f:podCIDR': {} });

  test('names their last writer and time', () => {
    const stamped = stamp(kubelet, entry('kubectl-taint', taints));
    assert.equal(stamped, 'kubectl-taint@2026-11-21T11:00:00Z');
  });

  test('names all owners in a stable order', () => {
    const [one, two] = [entry('one', taints), entry('two', { 'f:taints': { '.': {} } })];
    assert.equal(stamp(two, one), 'one@2026-11-21T11:00:00Z,two@2026-11-21T11:00:00Z');
    assert.equal(stamp(one, two), stamp(two, one));
  });

  test('is absent without owners, or with owners of the status only', () => {
    assert.equal(stamp(), undefined);
    assert.equal(stamp(kubelet), undefined);
    assert.equal(stamp(entry('kubelet', taints, { subresource: 'status' })), undefined);
    assert.equal(stamp(null, 'x', { fieldsV1: 'x' }, { fieldsV1: { 'f:spec': null } }), undefined);
  });
});

test('reads the controller of a pod as its owner', () => {
  const owner = (...ownerReferences: readonly unknown[]) => aPod({ ownerReferences }).owner;
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
      () => aPod({ [field]: undefined }),
      (error) => error instanceof ApiError && error.status === 0 && error.message.includes(field),
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
      const message = new RegExp(`without a metadata.${field} that is one`);
      assert.throws(() => aPod({ [field]: name }), message);
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
  assert.deepEqual(aPod({ annotations }), { ...aPod(), annotations });
  assert.deepEqual(projectNode({ metadata: { ...META, annotations } }), projectNode({ metadata: META }));
  // This annotation is used only in messages.
  const moved = { 'descheduler.alpha.kubernetes.io/eviction-in-progress': 'kubevirt' };
  assert.deepEqual(aPod({ annotations: moved }), { ...aPod(), annotations: moved, moving: true });
});

test('keeps annotations with values by which policy can select pods, and no longer ones', () => {
  const kept = { 'example.com/longest': 'x'.repeat(63), 'example.com/empty': '' };
  const longer = { 'example.com/longer': 'x'.repeat(64) };
  assert.deepEqual(aPod({ annotations: { ...kept, ...longer } }).annotations, kept);
  assert.equal(Object.hasOwn(aPod({ annotations: longer }), 'annotations'), false);
});

test('reads the priority class', () => {
  const spec = { priorityClassName: 'system-node-critical' };
  assert.equal(aPod({}, { spec }).priorityClassName, spec.priorityClassName);
  assert.equal(Object.hasOwn(aPod({}, { spec: {} }), 'priorityClassName'), false);
});

test('reads fields of unexpected types as absent', () => {
  const pod = aPod(
    { generation: '2', resourceVersion: 3 },
    {
      spec: { nodeName: 5, tolerations: { key: 'a' } },
      status: { conditions: [null, 'x', { type: 'PodScheduled', status: true }] },
    },
  );
  assert.deepEqual([pod.generation, pod.resourceVersion, pod.node, pod.tolerations], [0, '', undefined, []]);
});

describe('an interner', () => {
  test('returns the same object for the same key', () => {
    const interner = new Interner<object>(10);
    const first = interner.get('a', () => ({}));
    const again = interner.get('a', () => assert.fail('made twice'));
    const other = interner.get('b', () => ({}));
    assert.deepEqual([again === first, other === first], [true, false]);
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
  const time = '1923-01-01T00:00:00Z';
  assert.deepEqual(tainted({ ...TAINT, timeAdded: time }).taints, [{ ...TAINT, timeAdded: 0 }]);
  const scheduled = { type: 'PodScheduled', status: 'True', lastTransitionTime: time };
  assert.equal(aPod({}, withCondition(scheduled)).podSince, 0);
  assert.equal(aPod({ creationTimestamp: time }).podSince, 0);
});
