import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { nodeName } from '#shared/eviction/identity.ts';
import { versionPassed } from '#shared/kubernetes/rest-resource.ts';

const FOLLOWED = nodeName('followed');
const follows = (node: string) => node === FOLLOWED;

/** An event as the API server writes it. */
const event = (type: string, pod: object) => JSON.stringify({ type, object: pod });
const pod = ({ metadata = {}, spec = {} }: { metadata?: object; spec?: object } = {}) => ({
  kind: 'Pod',
  apiVersion: 'v1',
  metadata: {
    name: 'web-0',
    generateName: 'web-',
    namespace: 'shop',
    uid: 'c1f9be01-7d1f-4c2b-9a55-0ff3a2f0a001',
    resourceVersion: '123',
    generation: 1,
    ...metadata,
  },
  spec: { nodeName: 'other', ...spec },
});
const passed = (text: string) => versionPassed(Buffer.from(text), follows);

describe("a pod's event is skipped", () => {
  for (const type of ['ADDED', 'MODIFIED', 'DELETED']) {
    test(`except for its version if its node is not followed: ${type}`, () => {
      assert.equal(passed(event(type, pod())), '123');
    });
  }

  test("if its node's name is only in texts, field paths, or managed fields", () => {
    const metadata = {
      annotations: { last: '{"spec":{"nodeName":"followed"}}', note: 'the nodeName' },
      managedFields: [{ fieldsV1: { 'f:spec': { 'f:nodeName': {} } } }],
    };
    const spec = { containers: [{ env: [{ valueFrom: { fieldRef: { fieldPath: 'spec.nodeName' } } }] }] };
    assert.equal(passed(event('ADDED', pod({ metadata, spec }))), '123');
  });
});

describe('an event is read', () => {
  const { name, namespace, ...rest } = pod().metadata;
  for (const [what, text] of Object.entries({
    'of a followed node’s pod': event('ADDED', pod({ spec: { nodeName: FOLLOWED } })),
    'of a pod that is bound to no node': event('ADDED', pod({ spec: { nodeName: undefined } })),
    'of a pod with an empty node': event('ADDED', pod({ spec: { nodeName: '' } })),
    'that names two nodes': event('ADDED', pod({ spec: { nodeSelector: { nodeName: 'another' } } })),
    'whose label bears the word': event('ADDED', pod({ metadata: { labels: { is: 'nodeName' } } })),
    'with white space in it': JSON.stringify({ type: 'ADDED', object: pod() }, null, 1).replaceAll('\n', ''),
    'whose node’s name is escaped': event('ADDED', pod()).replace('"other"', '"\\u006fther"'),
    'whose fields come in another order': event('ADDED', {
      ...pod(),
      metadata: { namespace, name, ...rest },
    }),
    'that has no version': event('ADDED', pod({ metadata: { resourceVersion: '' } })),
    'of another kind': event('ADDED', { ...pod(), kind: 'Node' }),
    'that is a bookmark': event('BOOKMARK', pod()),
    'that is an error': event('ERROR', pod()),
    'that is no event': 'nodeName',
  })) {
    test(what, () => assert.equal(passed(text), undefined));
  }
});

test('never skips an event of a followed node, whatever else the pod contains', () => {
  const word = fc.constantFrom('nodeName', '"nodeName":"other"', 'other', FOLLOWED, '\\', '"', ',', '{');
  const text = fc.array(word, { maxLength: 4 }).map((words) => words.join(''));
  const fields = fc.dictionary(text, fc.oneof(text, fc.dictionary(text, text)), { maxKeys: 4 });
  fc.assert(
    fc.property(
      fc.constantFrom('ADDED', 'MODIFIED', 'DELETED'),
      fc.constantFrom('other', FOLLOWED, '', undefined),
      fields,
      fields,
      (type, node, metadata, spec) => {
        const object = pod({ metadata, spec: { ...spec, nodeName: node, affinity: spec } });
        const isPassed = passed(event(type, object)) !== undefined;
        assert.ok(!(isPassed && node === FOLLOWED));
      },
    ),
    { numRuns: 2000 },
  );
});
