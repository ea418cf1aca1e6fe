import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import {
  dueGroupId,
  encodeCanceled,
  encodeCountdowns,
  encodeDue,
  encodeRetry,
  MAX_DUE_MESSAGE_BYTES,
  parseDueMessage,
  settingAside,
} from '#shared/aws/due-message.ts';
import { RejectedMessageError } from '#shared/aws/rejected-message.ts';
import { becauseOf, type CanceledPod, countdownOf } from '#shared/engine/news.ts';
import { clusterName, nodeName, podUid } from '#shared/eviction/identity.ts';
import { aReason, aRecord } from '#test/contracts/partition-builders.ts';
import { ScriptedQueue } from '#test/world/scripted-queue.ts';

const ref = { cluster: clusterName('c1'), node: nodeName('n1') };
const version = { epoch: 3, sequence: 17 };
const pod = (name: string): CanceledPod => ({ uid: podUid(`uid-${name}`), namespace: 'default', name });

describe('a due message', () => {
  test('has the node and the time', () => {
    const message = parseDueMessage(encodeDue({ ...ref, at: 1_800_000_000_123 }));
    assert.deepEqual(message, { v: 1, kind: 'due', ...ref, at: 1_800_000_000_123 });
  });

  test('contains only its own fields', () => {
    const more = { ...ref, at: 1, secret: 'none of its business' };
    assert.deepEqual(Object.keys(JSON.parse(encodeDue(more))), ['v', 'kind', 'cluster', 'node', 'at']);
  });
});

test('is in the group of its cluster, by the name if SQS accepts it, and else by its hash', () => {
  assert.equal(dueGroupId(clusterName('c'.repeat(128))), 'c'.repeat(128));
  assert.match(dueGroupId(clusterName('c'.repeat(129))), /^[0-9a-f]{64}$/);
});

describe('a canceled message', () => {
  test('names the pods, and the version that canceled them', () => {
    const pods = [pod('a'), pod('b')];
    const [body = '', ...more] = encodeCanceled({ ...ref, version, pods });
    assert.deepEqual(parseDueMessage(body), { v: 1, kind: 'canceled', ...ref, version, pods });
    assert.deepEqual(more, []);
  });

  test('is not sent without pods', () => assert.deepEqual(encodeCanceled({ ...ref, version, pods: [] }), []));

  test('is split into as few messages as possible, with all pods in order', () => {
    const names = fc.array(fc.string({ unit: 'binary', minLength: 1, maxLength: 40 }), {
      minLength: 1,
      maxLength: 30,
    });
    fc.assert(
      fc.property(names, (some) => {
        const pods = Array.from({ length: 100 }, () => some).flatMap((one) =>
          one.map((name) => pod(name.repeat(8))),
        );
        const bodies = encodeCanceled({ ...ref, version, pods });
        const parsed = bodies.map((body) => {
          const message = parseDueMessage(body);
          assert.ok(message.kind === 'canceled');
          return message.pods;
        });
        assert.deepEqual(parsed.flat(), pods);
        for (const [at, body] of bodies.entries()) {
          assert.ok(Buffer.byteLength(body) <= MAX_DUE_MESSAGE_BYTES);
          const next = parsed[at + 1]?.[0];
          const larger = Buffer.byteLength(body) + Buffer.byteLength(JSON.stringify(next ?? '')) + 1;
          assert.ok(next === undefined || larger > MAX_DUE_MESSAGE_BYTES);
        }
      }),
      { numRuns: 8 },
    );
  });
});

describe('a message about pods', () => {
  /** Returns the bytes that a pod adds to a message. */
  const bytesOf = (name: string) => Buffer.byteLength(JSON.stringify(pod(name))) + 1;
  const empty =
    Buffer.byteLength(encodeCanceled({ ...ref, version, pods: [pod('')] })[0] ?? '') - bytesOf('');

  test('holds pods up to exactly its largest size', () => {
    const full = (bytes: number) => {
      const longer = MAX_DUE_MESSAGE_BYTES - empty - bytesOf('a') - bytesOf('') + bytes;
      // The UID contains the name as well.
      return [pod('a'), { ...pod(''), name: 'x'.repeat(longer) }];
    };
    assert.equal(encodeCanceled({ ...ref, version, pods: full(0) }).length, 1);
    assert.equal(encodeCanceled({ ...ref, version, pods: full(1) }).length, 2);
  });

  test('is sent for a single pod that exceeds the size', () => {
    const pods = [pod('x'.repeat(MAX_DUE_MESSAGE_BYTES)), pod('a')];
    const named = encodeCanceled({ ...ref, version, pods }).map((body) => {
      const message = parseDueMessage(body);
      return message.kind === 'canceled' && message.pods.length;
    });
    assert.deepEqual(named, [1, 1]);
  });
});

describe('a retry message', () => {
  test('names the pods', () => {
    const pods = [podUid('a'), podUid('b')];
    assert.deepEqual(parseDueMessage(encodeRetry({ ...ref, pods })), { v: 1, kind: 'retry', ...ref, pods });
  });

  test('names at least one pod', () => {
    assert.throws(() => parseDueMessage(encodeRetry({ ...ref, pods: [] })), RejectedMessageError);
  });

  test('is a dead letter with the reason; its writer learns when the queue rejects it', async () => {
    const queue = new ScriptedQueue();
    const pods = [podUid('a')];
    await settingAside(queue)(ref, pods, 'forbidden');
    const body = encodeRetry({ ...ref, pods });
    assert.deepEqual(queue.sent, [{ body, groupId: 'c1', attributes: { reason: 'forbidden' } }]);
    queue.refusal = { reason: 'full', permanent: false };
    await assert.rejects(settingAside(queue)(ref, pods, 'forbidden'), /rejected a failed eviction: full$/);
  });
});

test('announces a record with its pod, deadline and causes', () => {
  const record = aRecord({ causes: [aReason('a', 'b')] });
  const { uid, namespace, name, dueAt } = record;
  const because = [{ taint: 'a=b:NoExecute', toleration: 1, seconds: 300 }];
  assert.deepEqual(countdownOf(record), { uid, namespace, name, dueAt, because });
  const { toleration: _toleration, ...untolerated } = aReason('a');
  assert.deepEqual(becauseOf({ ...untolerated, seconds: 0 }), { taint: 'a:NoExecute', seconds: 0 });
});

describe('a countdown message', () => {
  const because = [
    { taint: 'a=b:NoExecute', toleration: 2, seconds: 300 },
    { taint: 'c:NoExecute', seconds: 0 },
  ];
  const countdown = { ...pod('a'), dueAt: 1_800_000_000_123, moved: false, because };

  test('has the deadline and causes of each pod', () => {
    const [body = '', ...more] = encodeCountdowns({
      ...ref,
      pods: [countdown, { ...countdown, moved: true }],
    });
    assert.deepEqual(parseDueMessage(body), {
      v: 1,
      kind: 'countdowns',
      ...ref,
      pods: [countdown, { ...countdown, moved: true }],
    });
    assert.deepEqual(more, []);
  });

  test('is not sent without pods', () => assert.deepEqual(encodeCountdowns({ ...ref, pods: [] }), []));
});

describe('parseDueMessage rejects, naming the field,', () => {
  const due = { v: 1, kind: 'due', cluster: 'c1', node: 'n1', at: 5 };
  const canceled = { v: 1, kind: 'canceled', cluster: 'c1', node: 'n1', version, pods: [pod('a')] };
  const refused: [what: string, body: string, sentence: RegExp][] = [
    ['what is not JSON', '{', /message: is not JSON$/],
    ['what is no object', '[]', /message: /],
    ['an unknown kind', JSON.stringify({ ...due, kind: 'later' }), /kind: /],
    [
      'a later version',
      JSON.stringify({ ...due, v: 2 }),
      /v: must be 1: deploy all functions from one release$/,
    ],
    ['a node that is missing', JSON.stringify({ ...due, node: undefined }), /node: /],
    ['a node with a # in it', JSON.stringify({ ...due, node: 'a#b' }), /node: must not contain #$/],
    [
      'a cluster that ends with a #',
      JSON.stringify({ ...due, cluster: 'a#' }),
      /cluster: must not contain #$/,
    ],
    [
      'a cluster that begins with a #',
      JSON.stringify({ ...due, cluster: '#a' }),
      /cluster: must not contain #$/,
    ],
    ['a node that begins with a #', JSON.stringify({ ...due, node: '#a' }), /node: must not contain #$/],
    ['a moment that is text', JSON.stringify({ ...due, at: '5' }), /at: /],
    ['a moment before 1970', JSON.stringify({ ...due, at: -1 }), /at: /],
    ['a field too many', JSON.stringify({ ...due, pods: [] }), /message: .*pods/],
    ['no pods', JSON.stringify({ ...canceled, pods: [] }), /pods: /],
    [
      'a pod without a uid',
      JSON.stringify({ ...canceled, pods: [{ namespace: 'a', name: 'b' }] }),
      /pods\.0\.uid: /,
    ],
    ['half a version', JSON.stringify({ ...canceled, version: { epoch: 1 } }), /version\.sequence: /],
  ];
  for (const [what, body, sentence] of refused) {
    test(what, () => {
      assert.throws(
        () => parseDueMessage(body),
        (error) => {
          assert.ok(error instanceof RejectedMessageError);
          assert.match(error.message, /^due message rejected: /);
          assert.match(error.message, sentence);
          return true;
        },
      );
    });
  }
});

test('rejects a time that no Date can hold, because it cannot be announced', () => {
  const [body = ''] = encodeCountdowns({
    cluster: clusterName('prod'),
    node: nodeName('n1'),
    pods: [{ ...pod('a'), dueAt: 8.64e15, moved: false, because: [] }],
  });
  assert.equal(parseDueMessage(body).kind, 'countdowns');
  assert.throws(() => parseDueMessage(body.replace('8640000000000000', '8640000000000001')), {
    message: /pods\.0\.dueAt: is beyond the last moment that a date can hold$/,
  });
});
