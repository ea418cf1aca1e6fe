import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { fieldSelector } from '#simulator/api/request.ts';
import { StatusError } from '#simulator/objects/status.ts';
import type { ObjectStore, WatchedChange } from '#simulator/objects/store.ts';
import { allOf, aNode, aPod, aStore, inDefault, NOW, settableClock, unscoped } from '../builders.ts';

const refused =
  (code: number, reason: string, message = /./) =>
  (error: unknown) => {
    assert.ok(error instanceof StatusError, String(error));
    assert.deepEqual([error.code, error.reason], [code, reason]);
    assert.match(error.message, message);
    return true;
  };

const EXISTS_60 = { key: 'maintenance', operator: 'Exists', effect: 'NoExecute', tolerationSeconds: 60 };

describe('a new object', () => {
  test('gets server-set fields, whatever the client sends', () => {
    const store = aStore();
    const forged = {
      uid: 'mine',
      resourceVersion: '99',
      creationTimestamp: 'x',
      deletionTimestamp: 'y',
      generation: 7,
    };
    const { metadata } = store.create('pods', 'default', aPod('web', {}, forged));
    assert.match(metadata.uid, /^[0-9a-f-]{36}$/);
    assert.equal(metadata.resourceVersion, '2');
    assert.equal(metadata.creationTimestamp, '2026-11-21T12:00:00Z');
    assert.equal(metadata.deletionTimestamp, undefined);
    assert.equal(metadata.generation, 1);
    assert.equal(metadata.namespace, 'default');
  });

  test('can have a generated name', () => {
    const store = aStore();
    const made = new Set(
      Array.from({ length: 20 }, () => {
        const { metadata } = store.create(
          'pods',
          'default',
          aPod('', {}, { name: undefined, generateName: 'web-' }),
        );
        assert.match(metadata.name, /^web-[a-z0-9]{5}$/);
        return metadata.name;
      }),
    );
    assert.equal(made.size, 20);
  });

  test('conflicts with an existing name', () => {
    const store = aStore();
    store.create('nodes', '', aNode('node-1'));
    assert.throws(
      () => store.create('nodes', '', aNode('node-1')),
      refused(409, 'AlreadyExists', /nodes "node-1"/),
    );
  });

  test('requires its namespace to exist and to be that of the request', () => {
    const store = aStore();
    assert.throws(
      () => store.create('pods', 'nowhere', aPod('web')),
      refused(404, 'NotFound', /namespaces "nowhere"/),
    );
    const elsewhere = aPod('web', {}, { namespace: 'elsewhere' });
    assert.throws(() => store.create('pods', 'default', elsewhere), refused(400, 'BadRequest', /namespace/));
  });

  test('requires a DNS subdomain as name', () => {
    const store = aStore();
    for (const name of ['', 'Web', 'a_b', '-a', 'a..b', 'a'.repeat(254)]) {
      assert.throws(() => store.create('nodes', '', aNode(name)), refused(422, 'Invalid', /metadata\.name/));
    }
  });

  test('is rejected if it has another kind or shape', () => {
    const store = aStore();
    assert.throws(
      () => store.create('nodes', '', { kind: 'Pod', metadata: { name: 'x' } }),
      refused(400, 'BadRequest'),
    );
    assert.throws(
      () => store.create('nodes', '', aNode('x', { taints: 'none' })),
      refused(400, 'BadRequest', /taints/),
    );
  });

  test('treats null as absent, as Go clients write it', () => {
    const store = aStore();
    const { spec } = store.create('nodes', '', aNode('node-1', { taints: null }));
    assert.deepEqual(spec, {});
  });
});

describe('admission', () => {
  test('appends the default tolerations to a new pod', () => {
    const { spec } = aStore().create('pods', 'default', aPod('web', { tolerations: [EXISTS_60] }));
    assert.deepEqual(spec.tolerations, [
      EXISTS_60,
      {
        key: 'node.kubernetes.io/not-ready',
        operator: 'Exists',
        effect: 'NoExecute',
        tolerationSeconds: 300,
      },
      {
        key: 'node.kubernetes.io/unreachable',
        operator: 'Exists',
        effect: 'NoExecute',
        tolerationSeconds: 300,
      },
    ]);
  });

  test('rejects taints that the real server rejects, with one cause each', () => {
    const taints = [{ key: 'a b', effect: 'NoExecute' }, { key: 'x', effect: 'No' }, { key: 'z' }];
    assert.throws(
      () => aStore().create('nodes', '', aNode('node-1', { taints })),
      (error: unknown) => {
        assert.ok(error instanceof StatusError);
        const body = error.body() as { details: { causes: { field: string; reason: string }[] } };
        assert.deepEqual(
          body.details.causes.map(({ field, reason }) => `${field} ${reason}`),
          [
            'metadata.taints[0].key FieldValueInvalid',
            'metadata.taints[1].effect FieldValueNotSupported',
            'metadata.taints[2].effect FieldValueRequired',
          ],
        );
        return true;
      },
    );
  });

  test('rejects a pod without containers or with invalid tolerations', () => {
    const store = aStore();
    const create = (spec: object) => () => store.create('pods', 'default', aPod('web', spec));
    assert.throws(create({ containers: [] }), refused(422, 'Invalid', /spec\.containers: Required value/));
    assert.throws(
      create({ tolerations: [{ key: 'a', operator: 'Exists', value: 'x' }] }),
      refused(422, 'Invalid', /spec\.tolerations\[0\]\.operator/),
    );
  });

  test('permits only added tolerations and changed seconds in a live pod', () => {
    const store = aStore();
    store.create('pods', 'default', aPod('web', { tolerations: [EXISTS_60] }));
    const withTolerations = (tolerations: readonly object[]) => () =>
      store.update('pods', inDefault('web'), 'main', (pod) => ({
        ...pod,
        spec: { ...pod.spec, tolerations },
      }));
    assert.throws(withTolerations([]), refused(422, 'Invalid', /spec\.tolerations/));
    const shortened = store
      .get('pods', inDefault('web'))
      .spec.tolerations?.with(0, { ...EXISTS_60, tolerationSeconds: 5 });
    const pod = withTolerations(shortened ?? [])();
    assert.equal(pod.spec.tolerations?.[0]?.tolerationSeconds, 5);
    assert.equal(pod.metadata.generation, 2);
  });

  test('rejects an update that moves a pod', () => {
    const store = aStore();
    store.create('pods', 'default', aPod('web'));
    assert.throws(
      () =>
        store.update('pods', inDefault('web'), 'main', (pod) => ({
          ...pod,
          spec: { ...pod.spec, nodeName: 'n' },
        })),
      refused(422, 'Invalid', /may not change fields/),
    );
  });

  test('rejects an Event about a pod in another namespace', () => {
    const event = {
      metadata: { name: 'e' },
      involvedObject: { kind: 'Pod', namespace: 'other', name: 'web' },
    };
    assert.throws(
      () => aStore().create('events', 'default', event),
      refused(422, 'Invalid', /involvedObject/),
    );
  });
});

describe('an update', () => {
  test('conflicts with a stale version, but not without a version', () => {
    const store = aStore();
    const node = store.create('nodes', '', aNode('node-1'));
    const tainted = (resourceVersion: string | undefined) => ({
      metadata: { name: 'node-1', resourceVersion },
      spec: { taints: [{ key: 'a', effect: 'NoExecute' }] },
    });
    assert.throws(
      () => store.update('nodes', unscoped('node-1'), 'main', () => tainted('1')),
      refused(409, 'Conflict', /the object has been modified/),
    );
    const updated = store.update('nodes', unscoped('node-1'), 'main', () => tainted(undefined));
    assert.equal(updated.metadata.uid, node.metadata.uid);
    assert.equal(updated.metadata.resourceVersion, '3');
  });

  test('is rejected if it names another UID, with 422 and metadata.uid as the real server', () => {
    const store = aStore();
    store.create('pods', 'default', aPod('web'));
    for (const part of ['main', 'status'] as const) {
      assert.throws(
        () =>
          store.update('pods', inDefault('web'), part, (pod) => ({
            ...pod,
            metadata: { ...pod.metadata, uid: 'other' },
          })),
        refused(422, 'Invalid', /metadata\.uid: Invalid value: "other": field is immutable/),
      );
    }
  });

  test('to the status keeps the rest, and the reverse', () => {
    const store = aStore();
    store.create('nodes', '', aNode('node-1'));
    const taints = [{ key: 'a', effect: 'NoExecute' }];
    const change = (node: object) => ({ ...node, spec: { taints }, status: { phase: 'x' } });
    const status = store.update('nodes', unscoped('node-1'), 'status', change);
    assert.deepEqual([status.spec, status.status], [{}, { phase: 'x' }]);
    const main = store.update('nodes', unscoped('node-1'), 'main', (node) => ({
      ...change(node),
      status: {},
    }));
    assert.deepEqual([main.spec, main.status], [{ taints }, { phase: 'x' }]);
  });

  test('creates no version if it changes nothing', () => {
    const store = aStore();
    store.create('nodes', '', aNode('node-1'));
    store.update('nodes', unscoped('node-1'), 'main', (node) => ({ ...node }));
    assert.equal(store.version, 2);
  });

  test("can't restore a terminating object", () => {
    const store = aStore();
    store.create('pods', 'default', aPod('web', { nodeName: 'node-1' }));
    store.delete('pods', inDefault('web'));
    const { metadata } = store.update('pods', inDefault('web'), 'main', (pod) => {
      const { deletionTimestamp, ...rest } = pod.metadata;
      return { ...pod, metadata: { ...rest, labels: { a: 'b' } } };
    });
    assert.equal(metadata.deletionTimestamp, '2026-11-21T12:00:30Z');
    assert.deepEqual(metadata.labels, { a: 'b' });
  });
});

describe("the owner of a node's taints", () => {
  const A = { key: 'a', effect: 'NoExecute' };
  const setup = () => {
    const clock = settableClock();
    const store = aStore({ clock });
    store.create('nodes', '', aNode('node-1'));
    const taint = (manager: string, ...taints: readonly object[]) => {
      clock.at += 1500;
      const change = (node: object) => ({ ...node, spec: { taints } });
      return store.update('nodes', unscoped('node-1'), 'main', change, { manager }).metadata.managedFields;
    };
    return { clock, store, taint };
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
    const { taint } = setup();
    assert.deepEqual(taint('kubectl-taint', A), [entry('kubectl-taint', '2026-11-21T12:00:01Z')]);
    const changed = { ...A, value: 'x' };
    assert.deepEqual(taint('other', changed), [entry('other', '2026-11-21T12:00:03Z')]);
    assert.deepEqual(taint('other', changed, { ...A, key: 'b' }), [entry('other', '2026-11-21T12:00:04Z')]);
  });

  test('is absent without taints', () => {
    const { taint } = setup();
    taint('first', A);
    assert.equal(taint('second'), undefined);
    assert.deepEqual(taint('third', A), [entry('third', '2026-11-21T12:00:04Z')]);
  });

  test('is the creator of the node, or "unknown" without a manager', () => {
    const { store, taint } = setup();
    const { metadata } = store.create('nodes', '', aNode('node-2', { taints: [A] }), { manager: 'kubelet' });
    assert.deepEqual(metadata.managedFields, [entry('kubelet', '2026-11-21T12:00:00Z')]);
    assert.deepEqual(taint('', A), [entry('unknown', '2026-11-21T12:00:01Z')]);
  });

  test("can't be forged", () => {
    const { store } = setup();
    const forge = (node: object) => ({
      ...node,
      metadata: { name: 'node-1', managedFields: [entry('mine', '2020-01-01T00:00:00Z')] },
      spec: { taints: [A] },
    });
    const { metadata } = store.update('nodes', unscoped('node-1'), 'main', forge);
    assert.deepEqual(
      metadata.managedFields?.map(({ manager }) => manager),
      ['unknown'],
    );
  });
});

test("the owner of a pod's DisruptionTarget condition is its last writer, regardless of other status writers", () => {
  const store = aStore();
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

describe('a binding', () => {
  test('sets the node and the time', () => {
    const store = aStore();
    store.create('pods', 'default', aPod('web'));
    const pod = store.bind(inDefault('web'), 'node-1');
    assert.equal(pod.spec.nodeName, 'node-1');
    assert.deepEqual(pod.status.conditions, [
      { type: 'PodScheduled', status: 'True', lastTransitionTime: '2026-11-21T12:00:00Z' },
    ]);
  });

  test('succeeds once', () => {
    const store = aStore();
    store.create('pods', 'default', aPod('web'));
    store.bind(inDefault('web'), 'node-1');
    assert.throws(() => store.bind(inDefault('web'), 'node-2'), refused(409, 'Conflict', /already assigned/));
  });
});

describe('a delete', () => {
  const bound = (store: ObjectStore) => store.create('pods', 'default', aPod('web', { nodeName: 'node-1' }));

  test('makes a bound pod terminating with its own grace period', () => {
    const store = aStore();
    bound(store);
    const { object, gone } = store.delete('pods', inDefault('web'));
    assert.equal(gone, false);
    assert.equal(object.metadata.deletionTimestamp, '2026-11-21T12:00:30Z');
    assert.equal(object.metadata.deletionGracePeriodSeconds, 30);
    assert.equal(object.metadata.generation, 2);
  });

  test('again changes nothing, and a shorter grace period counts from the first request', () => {
    const clock = settableClock();
    const store = aStore({ clock });
    bound(store);
    const first = store.delete('pods', inDefault('web')).object;
    clock.at = NOW + 3000;
    assert.equal(store.delete('pods', inDefault('web')).object, first);
    assert.equal(store.delete('pods', inDefault('web'), { gracePeriodSeconds: 60 }).object, first);
    const { metadata } = store.delete('pods', inDefault('web'), { gracePeriodSeconds: 5 }).object;
    assert.equal(metadata.deletionTimestamp, '2026-11-21T12:00:05Z');
    assert.equal(metadata.generation, 2);
  });

  test('removes immediately without grace period, and also an unbound or finished pod', () => {
    const store = aStore();
    bound(store);
    assert.equal(store.delete('pods', inDefault('web'), { gracePeriodSeconds: 0 }).gone, true);
    store.create('pods', 'default', aPod('web'));
    assert.equal(store.delete('pods', inDefault('web')).gone, true);
    bound(store);
    store.update('pods', inDefault('web'), 'status', (pod) => ({ ...pod, status: { phase: 'Succeeded' } }));
    assert.equal(store.delete('pods', inDefault('web')).gone, true);
    assert.equal(store.find('pods', inDefault('web')), undefined);
  });
});

describe('a list', () => {
  const withNodes = (count: number, historyLimit?: number) => {
    const store = aStore(historyLimit === undefined ? {} : { historyLimit });
    for (let n = 0; n < count; n += 1) store.create('nodes', '', aNode(`node-${n}`));
    return store;
  };
  const names = (items: readonly { metadata: { name: string } }[]) =>
    items.map(({ metadata }) => metadata.name);

  test('shows the cluster as of its first page in all pages', () => {
    const store = withNodes(5);
    const first = store.list('nodes', { ...allOf, limit: 2 });
    assert.deepEqual(names(first.items), ['node-0', 'node-1']);
    assert.equal(first.remainingItemCount, 3);
    store.delete('nodes', unscoped('node-2'));
    store.update('nodes', unscoped('node-3'), 'main', (node) => ({ ...node, spec: { unschedulable: true } }));
    store.create('nodes', '', aNode('node-9'));
    const rest = store.list('nodes', { ...allOf, limit: 9, continue: first.continue ?? '' });
    assert.deepEqual(names(rest.items), ['node-2', 'node-3', 'node-4']);
    assert.equal(
      rest.items[1]?.['spec'] instanceof Object && 'unschedulable' in rest.items[1]['spec'],
      false,
    );
    assert.equal(rest.version, first.version);
    assert.equal(rest.continue, undefined);
  });

  test('expires before a late next page', () => {
    const store = withNodes(4, 3);
    const { continue: token = '' } = store.list('nodes', { ...allOf, limit: 1 });
    for (let n = 0; n < 3; n += 1) store.create('nodes', '', aNode(`more-${n}`));
    assert.equal(store.list('nodes', { ...allOf, continue: token }).items.length, 3);
    store.create('nodes', '', aNode('one-too-many'));
    assert.throws(
      () => store.list('nodes', { ...allOf, continue: token }),
      refused(410, 'Expired', /too old/),
    );
  });

  test('rejects an invalid continue token', () => {
    for (const token of ['zzz', Buffer.from('{"version":-1}').toString('base64url')]) {
      assert.throws(
        () => withNodes(1).list('nodes', { ...allOf, continue: token }),
        refused(400, 'BadRequest'),
      );
    }
  });
});

describe('a watch', () => {
  const told = (changes: readonly WatchedChange[]) =>
    changes.map(({ type, object }) => `${type} ${object.metadata.name} ${object.metadata.resourceVersion}`);

  test('sends past and new changes of its kind until it is ended', () => {
    const store = aStore();
    store.create('nodes', '', aNode('node-1'));
    const changes: WatchedChange[] = [];
    const end = store.watch('nodes', { ...allOf, version: 1 }, (change) => changes.push(change));
    store.create('pods', 'default', aPod('web'));
    store.update('nodes', unscoped('node-1'), 'main', (node) => ({ ...node, spec: { unschedulable: true } }));
    store.delete('nodes', unscoped('node-1'));
    end();
    store.create('nodes', '', aNode('node-2'));
    assert.deepEqual(told(changes), ['ADDED node-1 2', 'MODIFIED node-1 4', 'DELETED node-1 5']);
  });

  test('with a selector sends objects that become selected or unselected', () => {
    const store = aStore();
    const changes: WatchedChange[] = [];
    const selects = fieldSelector('pods', 'spec.nodeName=node-1,status.phase!=Succeeded');
    store.watch('pods', { namespace: '', selects, version: 1 }, (change) => changes.push(change));
    store.create('pods', 'default', aPod('web'));
    store.bind(inDefault('web'), 'node-1');
    store.update('pods', inDefault('web'), 'status', (pod) => ({ ...pod, status: { phase: 'Succeeded' } }));
    store.delete('pods', inDefault('web'));
    assert.deepEqual(told(changes), ['ADDED web 3', 'DELETED web 4']);
  });

  test('resumes without loss from any version in the history', () => {
    const store = aStore({ historyLimit: 3 });
    for (let n = 0; n < 5; n += 1) store.create('nodes', '', aNode(`node-${n}`));
    const changes: WatchedChange[] = [];
    store.watch('nodes', { ...allOf, version: 3 }, (change) => changes.push(change));
    assert.deepEqual(told(changes), ['ADDED node-2 4', 'ADDED node-3 5', 'ADDED node-4 6']);
    assert.throws(
      () => store.watch('nodes', { ...allOf, version: 2 }, () => {}),
      refused(410, 'Expired', /too old resource version: 2 \(3\)/),
    );
  });

  test("can't start at a future version, which belongs to another cluster state", () => {
    assert.throws(() => aStore().watch('nodes', { ...allOf, version: 2 }, () => {}), refused(410, 'Expired'));
  });
});

describe('a change', () => {
  test("is not applied if it can't be saved", () => {
    const full = new Error('disk full');
    let fails = false;
    const store = aStore({
      save: () => {
        if (fails) throw full;
      },
    });
    fails = true;
    assert.throws(() => store.create('nodes', '', aNode('node-1')), full);
    assert.equal(store.version, 1);
    assert.equal(store.find('nodes', unscoped('node-1')), undefined);
  });
});
