import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { fieldSelector } from '#simulator/api/request.ts';
import { StatusError } from '#simulator/objects/status.ts';
import { aNode, aPod, aStore, inDefault } from '../builders.ts';

const store = aStore();
const pod = store.create('pods', 'default', aPod('web', { nodeName: 'node-1' }));
const node = store.create('nodes', '', aNode('node-1'));
const event = store.create('events', 'default', {
  metadata: { name: 'e' },
  involvedObject: { kind: 'Pod', namespace: 'default', name: 'web' },
  source: { component: 'kubelet' },
  type: 'Normal',
});

const refused = (error: unknown) => error instanceof StatusError && error.code === 400;

describe('a field selector', () => {
  for (const [selector, selects] of [
    ['spec.nodeName=node-1', true],
    ['spec.nodeName==node-1', true],
    ['spec.nodeName=node-2', false],
    ['spec.nodeName!=node-2', true],
    ['spec.nodeName=', false],
    ['metadata.name=web,metadata.namespace=default', true],
    ['spec.nodeName=node-1,status.phase!=Failed,status.phase!=Succeeded', true],
    ['spec.nodeName=node-1,status.phase!=Pending', false],
    ['', true],
  ] as const) {
    test(`"${selector}" ${selects ? 'selects' : 'leaves out'} a pending pod on node-1`, () => {
      assert.equal(fieldSelector('pods', selector)(pod), selects);
    });
  }

  test('selects a node that is not cordoned', () => {
    assert.ok(fieldSelector('nodes', 'spec.unschedulable=false')(node));
  });

  test('selects an Event by its object and its source', () => {
    const selector = 'involvedObject.kind=Pod,involvedObject.name=web,source=kubelet,type=Normal';
    assert.ok(fieldSelector('events', selector)(event));
  });

  test('selects an unbound pod by the empty node name', () => {
    const unbound = store.create('pods', 'default', aPod('unbound'));
    assert.ok(fieldSelector('pods', 'spec.nodeName=')(unbound));
    store.delete('pods', inDefault('unbound'));
  });

  for (const selector of ['spec.hostname=x', 'spec.nodeName', 'spec.nodeName>1', '=x']) {
    test(`rejects "${selector}"`, () => assert.throws(() => fieldSelector('pods', selector), refused));
  }
});
