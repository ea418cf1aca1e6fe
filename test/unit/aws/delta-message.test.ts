import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { deltaMessage, encodeDelta, parseDelta } from '#shared/aws/delta-message.ts';
import { MAX_MESSAGE_BYTES } from '#shared/aws/limits.ts';
import { RejectedMessageError } from '#shared/aws/rejected-message.ts';
import { messageFault } from '#shared/aws/sqs-message.ts';
import type { Delta, PodFacts } from '#shared/eviction/facts.ts';
import { clusterName, nodeName, podUid } from '#shared/eviction/identity.ts';
import { INT64_MAX, INT64_MIN } from '#shared/taints/int64.ts';
import { nodeDelta, pod, podDelta, podGone, taint, tolerating } from '#test/unit/eviction/builders.ts';

const text = fc.string({ minLength: 1, unit: 'binary' });
const name = text.filter((given) => !given.includes('#'));
const moment = fc.nat({ max: 8.64e15 });
const int64 = fc.oneof(
  fc.bigInt({ min: INT64_MIN, max: INT64_MAX }),
  fc.constantFrom(INT64_MIN, INT64_MAX, 0n, -1n),
);
const tolerations = fc.array(
  fc.record(
    {
      key: text,
      operator: text,
      value: text,
      effect: text,
      tolerationSeconds: int64,
      index: fc.nat(),
    },
    { requiredKeys: [] },
  ),
  { maxLength: 4 },
);
const podFacts: fc.Arbitrary<PodFacts> = fc.record(
  {
    uid: text.map(podUid),
    namespace: text,
    name: text,
    owner: fc.record({ kind: text, name: text }),
    podSince: moment,
    tolerations,
    rank: fc.nat(),
  },
  { requiredKeys: ['uid', 'namespace', 'name', 'podSince', 'tolerations'] },
);
const deletedPod = fc
  .tuple(podFacts, moment, fc.constantFrom('taint-manager' as const, 'other' as const))
  .map(([pod, at, by]) => ({ ...pod, deleted: { at, by } }));
const facts = {
  ref: fc.record({ cluster: name.map(clusterName), node: name.map(nodeName) }),
  version: fc.record({ epoch: moment, sequence: moment }),
  observedAt: moment,
  taints: fc.array(
    fc
      .record(
        {
          key: text,
          value: text,
          known: fc.constantFrom('added' as const, 'preexisting' as const),
          seenAt: moment,
          timeAdded: moment,
        },
        { requiredKeys: ['key', 'known', 'seenAt'] },
      )
      .chain((given) =>
        fc.constantFrom(
          { ...given, effect: 'NoExecute' },
          { ...given, effect: 'NoSchedule', virtual: true as const },
        ),
      ),
    { maxLength: 3 },
  ),
  taintsStamp: fc.string(),
  deletedAt: moment,
  guardRevision: fc.nat(),
};
const required = ['kind', 'ref', 'version', 'observedAt', 'taints'] as const;
const delta: fc.Arbitrary<Delta> = fc.oneof(
  fc.record(
    {
      ...facts,
      kind: fc.constant('node' as const),
      pods: fc.array(podFacts, { maxLength: 4 }),
      others: fc.array(text.map(podUid), { maxLength: 3 }),
      deleted: fc.array(deletedPod, { maxLength: 4 }),
      wake: fc.boolean(),
    },
    { requiredKeys: [...required, 'pods', 'wake'] },
  ),
  fc.record(
    { ...facts, kind: fc.constant('pod' as const), pod: podFacts },
    { requiredKeys: [...required, 'pod'] },
  ),
  fc.record(
    { ...facts, kind: fc.constant('pod-gone' as const), uid: text.map(podUid), deleted: deletedPod },
    { requiredKeys: [...required, 'uid'] },
  ),
);

test('decodes every delta as it was encoded, with exact int64 values', () => {
  fc.assert(
    fc.property(delta, (given) => assert.deepEqual(parseDelta(encodeDelta(given)), structuredClone(given))),
    {
      numRuns: 300,
    },
  );
});

test('encodes each distinct toleration list once, and decodes it as one object', () => {
  const lists = [[tolerating('a', 1)], [tolerating('a', 1)], [tolerating('a', 2)], []];
  const pods = lists.map((tolerations, index) => pod(`u${index}`, { tolerations }));
  const body = encodeDelta(nodeDelta(1, { pods }));
  assert.equal(JSON.parse(body).tolerations.length, 3);
  const read = parseDelta(body);
  assert.ok(read.kind === 'node');
  assert.equal(read.pods[0]?.tolerations, read.pods[1]?.tolerations);
  assert.deepEqual(
    read.pods.map(({ tolerations }) => tolerations),
    lists,
  );
});

test('a full node with a few toleration lists takes a fraction of the largest message', () => {
  const pods = Array.from({ length: 500 }, (_, index) => pod(`0123456789abcdef-${index}`.padEnd(36, '0')));
  assert.ok(Buffer.byteLength(encodeDelta(nodeDelta(1, { pods }))) < 200_000);
});

describe('the message of a delta', () => {
  const sizeOf = (pods: readonly PodFacts[]) => {
    const { delta, body } = deltaMessage(nodeDelta(1, { pods }));
    assert.ok(delta.kind === 'node' && Buffer.byteLength(body) <= MAX_MESSAGE_BYTES);
    assert.deepEqual(parseDelta(body), delta);
    return { uids: delta.pods.map(({ uid }) => uid), others: delta.others, bytes: Buffer.byteLength(body) };
  };
  /** Returns a pod that takes this many bytes, apart from its other fields. */
  const large = (uid: string, bytes: number, tolerations = [tolerating('a', 60)]) =>
    pod(uid, { name: 'x'.repeat(bytes), tolerations });
  const room = MAX_MESSAGE_BYTES - Buffer.byteLength(encodeDelta(nodeDelta(1, { pods: [large('u1', 0)] })));

  test('is the whole delta, up to the largest size of a message', () => {
    const fitting = nodeDelta(1, { pods: [large('u1', room)] });
    assert.deepEqual(deltaMessage(fitting), { delta: fitting, body: encodeDelta(fitting) });
    assert.deepEqual(sizeOf([large('u1', room + 1)]).others, ['u1']);
    const one = podDelta(1, { pod: large('u1', MAX_MESSAGE_BYTES) });
    assert.deepEqual(deltaMessage(one), { delta: one, body: encodeDelta(one) });
  });

  test('contains the pods that fit and the UIDs of the others, for a node that is too large', () => {
    const pods = [large('u1', 400_000), large('u2', 700_000), large('u3', 600_000), large('u4', 400_000)];
    const { uids, others } = sizeOf(pods);
    assert.deepEqual(
      [uids, others],
      [
        ['u1', 'u3'],
        ['u2', 'u4'],
      ],
    );
  });

  test('omits no pod that fits, to within a few bytes', () => {
    const given = (bytes: number) => sizeOf([large('u1', 500_000), large('u2', bytes), large('u3', 900_000)]);
    let [fits, tooLarge] = [400_000, 600_000];
    while (tooLarge - fits > 1) {
      const middle = Math.floor((fits + tooLarge) / 2);
      if (given(middle).uids.includes(pod('u2').uid)) fits = middle;
      else tooLarge = middle;
    }
    const { uids, others, bytes } = given(fits);
    assert.deepEqual([uids, others], [['u1', 'u2'], ['u3']]);
    // The first pod and the first toleration list have no comma, so two bytes remain.
    assert.equal(MAX_MESSAGE_BYTES - bytes, 2);
  });

  test('never exceeds the largest size, when each pod has its own UID and tolerations', () => {
    const pods = Array.from({ length: 9999 }, (_, n) =>
      large(`${n}-${'u'.repeat(30)}`, 1, [tolerating(`${n}`, 60)]),
    );
    const { uids, others, bytes } = sizeOf(pods);
    assert.equal(uids.length + (others?.length ?? 0), pods.length);
    assert.ok(bytes <= MAX_MESSAGE_BYTES, `${bytes} bytes`);
  });

  test('counts shared tolerations once, and other tolerations each', () => {
    const list = (key: string) => [tolerating(key.repeat(300_000), 60)];
    const shared = sizeOf(['u1', 'u2', 'u3', 'u4'].map((uid) => large(uid, 150_000, list('a'))));
    assert.deepEqual(shared.uids, ['u1', 'u2', 'u3', 'u4']);
    const shares = sizeOf(['u1', 'u2', 'u3', 'u4', 'u5'].map((uid) => large(uid, 180_000, list('a'))));
    assert.deepEqual([shares.uids, shares.others], [['u1', 'u2', 'u3', 'u4'], ['u5']]);
    const separateSize = sizeOf(['a', 'b', 'c', 'd'].map((key) => large(key, 10, list(key))));
    assert.deepEqual([separateSize.uids, separateSize.others], [['a', 'b', 'c'], ['d']]);
  });

  test('omits the actors of deletions, for a node that is too large', () => {
    const deleted = [{ ...pod('u9'), deleted: { at: 1, by: 'other' as const } }];
    const { delta } = deltaMessage(nodeDelta(1, { pods: [large('u1', MAX_MESSAGE_BYTES)], deleted }));
    assert.equal(delta.kind === 'node' && delta.deleted, undefined);
  });
});

test('omits the stored fields of a taint, and an empty value', () => {
  const stored = { ...taint('a', 0, ''), since: 5 };
  assert.deepEqual(JSON.parse(encodeDelta(podDelta(1, { taints: [stored] }))).taints, [taint('a')]);
});

describe('an error names the field', () => {
  const node = JSON.parse(encodeDelta(nodeDelta(1)));
  const one = JSON.parse(encodeDelta(podDelta(1)));
  const gone = JSON.parse(encodeDelta(podGone(1)));
  const [onlyPod] = node.pods;
  const [onlyTaint] = node.taints;
  const seconds = (tolerationSeconds: unknown) => ({
    ...node,
    tolerations: [[{ key: 'a', tolerationSeconds }]],
  });
  const podWith = (fields: object) => ({ ...node, pods: [{ ...onlyPod, ...fields }] });
  const taintWith = (fields: object) => ({ ...node, taints: [{ ...onlyTaint, ...fields }] });

  const rows: readonly (readonly [field: string, message: unknown])[] = [
    ['message', 'a text'],
    ['message', null],
    ['message', []],
    ['kind', { ...node, kind: 'service' }],
    ['kind', { ...node, kind: undefined }],
    ['v', { ...node, v: 2 }],
    ['v', { ...node, v: undefined }],
    ['cluster', { ...node, cluster: '' }],
    ['cluster', { ...node, cluster: 'a#b' }],
    ['node', { ...node, node: 'a#b' }],
    ['node', { ...node, node: 7 }],
    ['version', { ...node, version: 7 }],
    ['version.epoch', { ...node, version: { epoch: -1, sequence: 1 } }],
    ['version.sequence', { ...node, version: { epoch: 1, sequence: 1.5 } }],
    ['version.sequence', { ...node, version: { epoch: 1, sequence: 2 ** 53 } }],
    ['version', { ...node, version: { epoch: 1, sequence: 1, more: 1 } }],
    ['observedAt', { ...node, observedAt: '2026-01-01' }],
    ['observedAt', { ...node, observedAt: -1 }],
    ['deletedAt', { ...node, deletedAt: null }],
    ['taints', { ...node, taints: {} }],
    ['taints.0.key', taintWith({ key: '' })],
    ['taints.0.effect', taintWith({ effect: 'PreferNoSchedule' })],
    ['taints.0.virtual', taintWith({ effect: 'NoSchedule' })],
    ['taints.0', taintWith({ virtual: true })],
    ['taints.0.seenAt', taintWith({ seenAt: undefined })],
    ['taints.0.value', taintWith({ value: null })],
    ['taints.0', taintWith({ since: 1 })],
    ['wake', { ...node, wake: 'yes' }],
    ['pods', { ...node, pods: undefined }],
    ['pods.0.uid', podWith({ uid: '' })],
    ['pods.0.namespace', podWith({ namespace: '' })],
    ['pods.0.name', podWith({ name: 5 })],
    ['pods.0.podSince', podWith({ podSince: -5 })],
    ['pods.0.tolerations', podWith({ tolerations: 1 })],
    ['pods.0.tolerations', podWith({ tolerations: -1 })],
    ['pods.0', podWith({ phase: 'Running' })],
    ['tolerations', { ...node, tolerations: undefined }],
    ['tolerations.0', { ...node, tolerations: ['a'] }],
    ['tolerations.0.0.key', { ...node, tolerations: [[{ key: 1 }]] }],
    ['tolerations.0.0', { ...node, tolerations: [[{ seconds: '1' }]] }],
    ['tolerations.0.0.tolerationSeconds', seconds(300)],
    ['tolerations.0.0.tolerationSeconds', seconds('1e3')],
    ['tolerations.0.0.tolerationSeconds', seconds('007')],
    ['tolerations.0.0.tolerationSeconds', seconds('9223372036854775808')],
    ['tolerations.0.0.tolerationSeconds', seconds('-9223372036854775809')],
    ['tolerations.0.0.tolerationSeconds', seconds('9'.repeat(400))],
    ['tolerations.0.0.index', { ...node, tolerations: [[{ index: -1 }]] }],
    ['pod', { ...one, pod: undefined }],
    ['pod.uid', { ...one, pod: { ...one.pod, uid: '' } }],
    ['pod.tolerations', { ...one, pod: { ...one.pod, tolerations: 1 } }],
    ['tolerations', { ...one, tolerations: [[], []] }],
    ['uid', { ...gone, uid: '' }],
    ['message', { ...gone, pod: one.pod }],
    ['message', { ...one, pods: [] }],
  ];
  const deleted = { ...onlyPod, deleted: { at: 1, by: 'other' } };
  const sentences: readonly (readonly [sentence: string, message: unknown])[] = [
    ['tolerations.0.0.tolerationSeconds: must be an int64 as text, for example "300"', seconds('007')],
    [
      'taints.0.virtual: must be true: of NoSchedule taints, only virtual ones evict',
      taintWith({ effect: 'NoSchedule' }),
    ],
    [
      'taints.0.effect: must be NoExecute, or NoSchedule of a virtual taint: no other effect evicts',
      taintWith({ effect: 'PreferNoSchedule' }),
    ],
    ['v: must be 1: deploy relay and handlers from one release', { ...node, v: 2 }],
    ['cluster: must not contain #', { ...node, cluster: 'a#' }],
    ['cluster: must not contain #', { ...node, cluster: '#a' }],
    ['node: must not contain #', { ...node, node: 'a#' }],
    ['node: must not contain #', { ...node, node: '#a' }],
    [
      'deleted.0.tolerations: there is no toleration list 7',
      { ...node, deleted: [{ ...deleted, tolerations: 7 }] },
    ],
    [
      'deleted.tolerations: there is no toleration list 7',
      { ...gone, tolerations: [[]], deleted: { ...deleted, tolerations: 7 } },
    ],
    ['deleted.tolerations: there is no toleration list 0', { ...gone, deleted }],
  ];
  for (const [sentence, message] of sentences) {
    test(sentence, () => {
      assert.throws(() => parseDelta(JSON.stringify(message)), {
        name: 'RejectedMessageError',
        message: `delta message rejected: ${sentence}`,
      });
    });
  }

  for (const [field, message] of rows) {
    const body = JSON.stringify(message);
    test(`${field}: ${body.slice(0, 40)}… (${body.length} characters)`, () => {
      assert.throws(
        () => parseDelta(body),
        (error) => {
          assert.ok(error instanceof RejectedMessageError);
          const [, named] = /^delta message rejected: ([^ ]+): [^\n]+$/.exec(error.message) ?? [];
          assert.equal(named, field, error.message);
          return true;
        },
      );
    });
  }

  test('message: not JSON', () => {
    for (const body of ['', '{', 'undefined']) {
      assert.throws(
        () => parseDelta(body),
        new RejectedMessageError('delta message rejected: message: is not JSON'),
      );
    }
  });
});

test('rejects any JSON that is not a delta', () => {
  fc.assert(
    fc.property(fc.json(), (body) => {
      assert.throws(() => parseDelta(body), RejectedMessageError);
    }),
  );
});

test('rejects a message with a reason that SQS accepts', () => {
  const body = JSON.stringify({
    ...JSON.parse(encodeDelta(nodeDelta(1))),
    [`\uffff\n${'x'.repeat(10_000)}`]: 1,
  });
  assert.throws(
    () => parseDelta(body),
    ({ message }: Error) =>
      messageFault({ body: 'x', attributes: { reason: message } }) === undefined && message.length < 300,
  );
});

test('encodes any names so that SQS accepts them, and decodes them unchanged', () => {
  const delta = podDelta(1, { pod: pod('u1', { name: 'a\uffff\ufffe\u0000\ud800' }) });
  const body = encodeDelta(delta);
  assert.equal(messageFault({ body }), undefined);
  assert.deepEqual(parseDelta(body), delta);
});
