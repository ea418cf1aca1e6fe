import assert from 'node:assert/strict';
import { beforeEach, describe, test } from 'node:test';
import { fieldSelector } from '#simulator/api/request.ts';
import type { PodObject } from '#simulator/objects/kinds.ts';
import type { DeleteRequest, ObjectStore, WatchedChange } from '#simulator/objects/store.ts';
import { at, each } from '../api/api-client.ts';
import {
  allOf,
  aNode,
  aPod,
  aStore,
  inDefault,
  NOW,
  refusalOf,
  type SettableClock,
  settableClock,
  unscoped,
} from '../builders.ts';

let store: ObjectStore;
beforeEach(() => {
  store = aStore();
});

const createPod = (name = 'web', spec: object = {}, metadata: object = {}) =>
  store.create('pods', 'default', aPod(name, spec, metadata));
const createNode = (name = 'node-1', spec: object = {}) => store.create('nodes', '', aNode(name, spec));
const changePod = (change: (pod: PodObject) => object, part: 'main' | 'status' = 'main') =>
  store.update('pods', inDefault('web'), part, change);
const changeNode = (name: string, spec: object) =>
  store.update('nodes', unscoped(name), 'main', (node) => ({ ...node, spec }));
const deletePod = (request: DeleteRequest = {}) => store.delete('pods', inDefault('web'), request);

const EXISTS_60 = { key: 'maintenance', operator: 'Exists', effect: 'NoExecute', tolerationSeconds: 60 };

const TAINT = { key: 'a', effect: 'NoExecute' };
function failsWith(request: () => unknown, code: number, reason: string, message = /./): void {
  const error = refusalOf(request);
  assert.deepEqual([error.code, error.reason], [code, reason]);
  assert.match(error.message, message);
}

describe('a new object', () => {
  test('gets server-set fields, whatever the client sends', () => {
    const forged = {
      uid: 'mine',
      resourceVersion: '99',
      creationTimestamp: 'x',
      deletionTimestamp: 'y',
      generation: 7,
    };
    const { uid, ...metadata } = createPod('web', {}, forged).metadata;
    assert.match(uid, /^[0-9a-f-]{36}$/);
    assert.deepEqual(metadata, {
      name: 'web',
      namespace: 'default',
      resourceVersion: '2',
      generation: 1,
      creationTimestamp: '2026-11-21T12:00:00Z',
    });
  });

  test('can have a generated name', () => {
    const generated = { name: undefined, generateName: 'web-' };
    const names = Array.from({ length: 20 }, () => createPod('', {}, generated).metadata.name);
    for (const name of names) assert.match(name, /^web-[a-z0-9]{5}$/);
    assert.equal(new Set(names).size, 20);
  });

  test('conflicts with an existing name', () => {
    createNode();
    failsWith(createNode, 409, 'AlreadyExists', /nodes "node-1"/);
  });

  test('requires its namespace to exist and to be that of the request', () => {
    const nowhere = () => store.create('pods', 'nowhere', aPod('web'));
    failsWith(nowhere, 404, 'NotFound', /namespaces "nowhere"/);
    failsWith(() => createPod('web', {}, { namespace: 'elsewhere' }), 400, 'BadRequest', /namespace/);
  });

  test('requires a DNS subdomain as name', () => {
    for (const name of ['', 'Web', 'a_b', '-a', 'a..b', 'a'.repeat(254)])
      failsWith(() => createNode(name), 422, 'Invalid', /metadata\.name/);
  });

  test('is rejected if it has another kind or shape', () => {
    const aPodAsNode = { kind: 'Pod', metadata: { name: 'x' } };
    failsWith(() => store.create('nodes', '', aPodAsNode), 400, 'BadRequest');
    failsWith(() => createNode('x', { taints: 'none' }), 400, 'BadRequest', /taints/);
  });

  test('treats null as absent, as Go clients write it', () => {
    assert.deepEqual(createNode('node-1', { taints: null }).spec, {});
  });
});

describe('admission', () => {
  test('appends the default tolerations to a new pod', () => {
    const byDefault = { operator: 'Exists', effect: 'NoExecute', tolerationSeconds: 300 };
    assert.deepEqual(createPod('web', { tolerations: [EXISTS_60] }).spec.tolerations, [
      EXISTS_60,
      { key: 'node.kubernetes.io/not-ready', ...byDefault },
      { key: 'node.kubernetes.io/unreachable', ...byDefault },
    ]);
  });

  test('rejects taints that the real server rejects, with one cause each', () => {
    const taints = [{ key: 'a b', effect: 'NoExecute' }, { key: 'x', effect: 'No' }, { key: 'z' }];
    const causes = at(refusalOf(() => createNode('node-1', { taints })).body(), 'details', 'causes');
    const fields = ['metadata.taints[0].key', 'metadata.taints[1].effect', 'metadata.taints[2].effect'];
    assert.deepEqual(each(causes, 'field'), fields);
    const reasons = ['FieldValueInvalid', 'FieldValueNotSupported', 'FieldValueRequired'];
    assert.deepEqual(each(causes, 'reason'), reasons);
  });

  test('rejects a pod without containers or with invalid tolerations', () => {
    const create = (spec: object) => () => createPod('web', spec);
    failsWith(create({ containers: [] }), 422, 'Invalid', /spec\.containers: Required value/);
    const tolerations = [{ key: 'a', operator: 'Exists', value: 'x' }];
    failsWith(create({ tolerations }), 422, 'Invalid', /spec\.tolerations\[0\]\.operator/);
  });

  test('permits only added tolerations and changed seconds in a live pod', () => {
    const { spec } = createPod('web', { tolerations: [EXISTS_60] });
    const withTolerations = (tolerations: readonly object[] = []) =>
      changePod((pod) => ({ ...pod, spec: { ...pod.spec, tolerations } }));
    failsWith(withTolerations, 422, 'Invalid', /spec\.tolerations/);
    const pod = withTolerations(spec.tolerations?.with(0, { ...EXISTS_60, tolerationSeconds: 5 }));
    assert.equal(pod.spec.tolerations?.[0]?.tolerationSeconds, 5);
    assert.equal(pod.metadata.generation, 2);
  });

  test('rejects an update that moves a pod', () => {
    createPod();
    const move = () => changePod((pod) => ({ ...pod, spec: { ...pod.spec, nodeName: 'n' } }));
    failsWith(move, 422, 'Invalid', /may not change fields/);
  });

  test('rejects an Event about a pod in another namespace', () => {
    const involvedObject = { kind: 'Pod', namespace: 'other', name: 'web' };
    const post = () => store.create('events', 'default', { metadata: { name: 'e' }, involvedObject });
    failsWith(post, 422, 'Invalid', /involvedObject/);
  });
});

describe('an update', () => {
  test('conflicts with a stale version, but not without a version', () => {
    const node = createNode();
    const update = (resourceVersion?: string) =>
      store.update('nodes', unscoped('node-1'), 'main', () => ({
        metadata: { name: 'node-1', resourceVersion },
        spec: { taints: [TAINT] },
      }));
    failsWith(() => update('1'), 409, 'Conflict', /the object has been modified/);
    const { metadata } = update();
    assert.deepEqual([metadata.uid, metadata.resourceVersion], [node.metadata.uid, '3']);
  });

  test('to the status keeps the rest, and the reverse', () => {
    createNode();
    const spec = { taints: [TAINT] };
    const update = (part: 'main' | 'status', phase: string) =>
      store.update('nodes', unscoped('node-1'), part, (node) => ({ ...node, spec, status: { phase } }));
    const status = update('status', 'x');
    assert.deepEqual([status.spec, status.status], [{}, { phase: 'x' }]);
    const main = update('main', 'y');
    assert.deepEqual([main.spec, main.status], [spec, { phase: 'x' }]);
  });

  test('creates no version if it changes nothing', () => {
    createNode();
    changeNode('node-1', {});
    assert.equal(store.version, 2);
  });

  test("can't restore a terminating object", () => {
    createPod('web', { nodeName: 'node-1' });
    deletePod();
    const { metadata } = changePod((pod) => {
      const { deletionTimestamp, ...rest } = pod.metadata;
      return { ...pod, metadata: { ...rest, labels: { a: 'b' } } };
    });
    assert.equal(metadata.deletionTimestamp, '2026-11-21T12:00:30Z');
    assert.deepEqual(metadata.labels, { a: 'b' });
  });
});

describe("the owner of a node's taints", () => {
  const A = TAINT;
  let clock: SettableClock;
  beforeEach(() => {
    clock = settableClock();
    store = aStore({ clock });
    createNode();
  });
  const taint = (manager: string, ...taints: readonly object[]) => {
    clock.at += 1500;
    const change = (node: object) => ({ ...node, spec: { taints } });
    return store.update('nodes', unscoped('node-1'), 'main', change, { manager }).metadata.managedFields;
  };
  const entry = (manager: string, time: string) => ({
    manager,
    operation: 'Update',
    apiVersion: 'v1',
    time,
    fieldsType: 'FieldsV1',
    fieldsV1: { 'f:spec': { 'f:taints': {} } },
  });

  test('is their last writer, with a time in whole seconds', () => {
    assert.deepEqual(taint('kubectl-taint', A), [entry('kubectl-taint', '2026-11-21T12:00:01Z')]);
    const changed = { ...A, value: 'x' };
    assert.deepEqual(taint('other', changed), [entry('other', '2026-11-21T12:00:03Z')]);
    assert.deepEqual(taint('other', changed, { ...A, key: 'b' }), [entry('other', '2026-11-21T12:00:04Z')]);
  });

  test('is the creator of the node, or "unknown" without a manager', () => {
    const { metadata } = store.create('nodes', '', aNode('node-2', { taints: [A] }), { manager: 'kubelet' });
    assert.deepEqual(metadata.managedFields, [entry('kubelet', '2026-11-21T12:00:00Z')]);
    assert.deepEqual(taint('', A), [entry('unknown', '2026-11-21T12:00:01Z')]);
  });

  test("can't be forged", () => {
    const forge = (node: object) => ({
      ...node,
      metadata: { name: 'node-1', managedFields: [entry('mine', '2020-01-01T00:00:00Z')] },
      spec: { taints: [A] },
    });
    const { metadata } = store.update('nodes', unscoped('node-1'), 'main', forge);
    assert.equal(metadata.managedFields?.map(({ manager }) => manager).join(), 'unknown');
  });
});

test("the owner of a pod's DisruptionTarget condition is its last writer, regardless of other status writers", () => {
  store.create('pods', 'default', aPod('web'), { manager: 'creator' });
  const write = (manager: string, ...conditions: readonly object[]) =>
    store
      .update('pods', inDefault('web'), 'status', (pod) => ({ ...pod, status: { conditions } }), { manager })
      .metadata.managedFields?.map((entry) => [entry.manager, entry.subresource, entry.fieldsV1]);
  const ready = { type: 'Ready', status: 'False' };
  const mark = { type: 'DisruptionTarget', status: 'True', reason: 'DeletionByTaintManager' };
  const marked = { 'f:status': { 'f:conditions': { 'k:{"type":"DisruptionTarget"}': {} } } };
  assert.equal(write('kubelet', ready), undefined);
  assert.deepEqual(write('taintward-a', ready, mark), [['taintward-a', 'status', marked]]);
  assert.deepEqual(write('kubelet', mark), [['taintward-a', 'status', marked]]);
  assert.deepEqual(write('taintward-b', { ...mark, message: 'b' }), [['taintward-b', 'status', marked]]);
});

test('a binding sets the node and the time, once', () => {
  createPod();
  const pod = store.bind(inDefault('web'), 'node-1');
  assert.equal(pod.spec.nodeName, 'node-1');
  assert.deepEqual(pod.status.conditions, [
    { type: 'PodScheduled', status: 'True', lastTransitionTime: '2026-11-21T12:00:00Z' },
  ]);
  failsWith(() => store.bind(inDefault('web'), 'node-2'), 409, 'Conflict', /already assigned/);
});

describe('a delete', () => {
  const bound = () => createPod('web', { nodeName: 'node-1' });

  test('makes a bound pod terminating with its own grace period', () => {
    bound();
    const { object, gone } = deletePod();
    const { deletionTimestamp, deletionGracePeriodSeconds, generation } = object.metadata;
    assert.deepEqual(
      [gone, deletionTimestamp, deletionGracePeriodSeconds, generation],
      [false, '2026-11-21T12:00:30Z', 30, 2],
    );
  });

  test('again changes nothing, and a shorter grace period counts from the first request', () => {
    const clock = settableClock();
    store = aStore({ clock });
    bound();
    const first = deletePod().object;
    clock.at = NOW + 3000;
    assert.equal(deletePod().object, first);
    assert.equal(deletePod({ gracePeriodSeconds: 60 }).object, first);
    const { metadata } = deletePod({ gracePeriodSeconds: 5 }).object;
    assert.deepEqual([metadata.deletionTimestamp, metadata.generation], ['2026-11-21T12:00:05Z', 2]);
  });

  test('removes immediately without grace period, and also an unbound or finished pod', () => {
    bound();
    assert.equal(deletePod({ gracePeriodSeconds: 0 }).gone, true);
    createPod();
    assert.equal(deletePod().gone, true);
    bound();
    changePod((pod) => ({ ...pod, status: { phase: 'Succeeded' } }), 'status');
    assert.equal(deletePod().gone, true);
    assert.equal(store.find('pods', inDefault('web')), undefined);
  });
});

const createNodes = (count: number, prefix = 'node') => {
  for (let n = 0; n < count; n += 1) createNode(`${prefix}-${n}`);
};

describe('a list', () => {
  const names = (items: readonly { metadata: { name: string } }[]) =>
    items.map(({ metadata }) => metadata.name);

  test('shows the cluster as of its first page in all pages', () => {
    createNodes(5);
    const first = store.list('nodes', { ...allOf, limit: 2 });
    assert.deepEqual(names(first.items), ['node-0', 'node-1']);
    assert.equal(first.remainingItemCount, 3);
    store.delete('nodes', unscoped('node-2'));
    changeNode('node-3', { unschedulable: true });
    createNode('node-9');
    const rest = store.list('nodes', { ...allOf, limit: 9, continue: first.continue ?? '' });
    assert.deepEqual(names(rest.items), ['node-2', 'node-3', 'node-4']);
    assert.deepEqual(rest.items[1]?.['spec'], {});
    assert.equal(rest.version, first.version);
    assert.equal(rest.continue, undefined);
  });

  test('expires before a late next page', () => {
    store = aStore({ historyLimit: 3 });
    createNodes(4);
    const { continue: token = '' } = store.list('nodes', { ...allOf, limit: 1 });
    createNodes(3, 'more');
    assert.equal(store.list('nodes', { ...allOf, continue: token }).items.length, 3);
    createNode('one-too-many');
    failsWith(() => store.list('nodes', { ...allOf, continue: token }), 410, 'Expired', /too old/);
  });

  test('rejects an invalid continue token', () => {
    for (const token of ['zzz', Buffer.from('{"version":-1}').toString('base64url')]) {
      failsWith(() => store.list('nodes', { ...allOf, continue: token }), 400, 'BadRequest');
    }
  });
});

describe('a watch', () => {
  const linesOf = (changes: readonly WatchedChange[]) =>
    changes.map(({ type, object }) => `${type} ${object.metadata.name} ${object.metadata.resourceVersion}`);

  test('sends past and new changes of its kind until it is ended', () => {
    createNode();
    const changes: WatchedChange[] = [];
    const end = store.watch('nodes', { ...allOf, version: 1 }, (change) => changes.push(change));
    createPod();
    changeNode('node-1', { unschedulable: true });
    store.delete('nodes', unscoped('node-1'));
    end();
    createNode('node-2');
    assert.deepEqual(linesOf(changes), ['ADDED node-1 2', 'MODIFIED node-1 4', 'DELETED node-1 5']);
  });

  test('with a selector sends objects that become selected or unselected', () => {
    const changes: WatchedChange[] = [];
    const selects = fieldSelector('pods', 'spec.nodeName=node-1,status.phase!=Succeeded');
    store.watch('pods', { namespace: '', selects, version: 1 }, (change) => changes.push(change));
    createPod();
    store.bind(inDefault('web'), 'node-1');
    changePod((pod) => ({ ...pod, status: { phase: 'Succeeded' } }), 'status');
    deletePod();
    assert.deepEqual(linesOf(changes), ['ADDED web 3', 'DELETED web 4']);
  });

  test('resumes without loss from any version in the history', () => {
    store = aStore({ historyLimit: 3 });
    createNodes(5);
    const changes: WatchedChange[] = [];
    store.watch('nodes', { ...allOf, version: 3 }, (change) => changes.push(change));
    assert.deepEqual(linesOf(changes), ['ADDED node-2 4', 'ADDED node-3 5', 'ADDED node-4 6']);
    const tooLate = () => store.watch('nodes', { ...allOf, version: 2 }, () => {});
    failsWith(tooLate, 410, 'Expired', /too old resource version: 2 \(3\)/);
  });

  test("can't start at a future version, which belongs to another cluster state", () => {
    failsWith(() => store.watch('nodes', { ...allOf, version: 2 }, () => {}), 410, 'Expired');
  });
});

test("a change is not applied if it can't be saved", () => {
  const full = new Error('disk full');
  let fails = false;
  store = aStore({
    save: () => {
      if (fails) throw full;
    },
  });
  fails = true;
  assert.throws(createNode, full);
  assert.equal(store.version, 1);
  assert.equal(store.find('nodes', unscoped('node-1')), undefined);
});
