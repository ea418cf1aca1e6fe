import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import {
  deduplicationId,
  deltaMessage,
  encodeDelta,
  messageGroupId,
  parseDelta,
} from '#shared/aws/delta-message.ts';
import { MAX_MESSAGE_BYTES } from '#shared/aws/limits.ts';
import { messageFault } from '#shared/aws/sqs-message.ts';
import type { Delta } from '#shared/eviction/facts.ts';
import { clusterName, podUid } from '#shared/eviction/identity.ts';
import type { Toleration } from '#shared/taints/taint.ts';
import { liveNode, livePod } from '#test/unit/engine/watch/live-objects.ts';
import {
  after,
  at,
  committed,
  forecast,
  nodeDelta,
  planned,
  pod,
  podDelta,
  recordIn,
  tolerating,
} from '#test/unit/eviction/builders.ts';
import { SendingView } from '#test/world/sending-view.ts';

/** The longest prefix that a key can have. */
const PREFIX = [60, 60, 60, 60]
  .map((length, index) => String.fromCharCode(97 + index).repeat(length))
  .join('.');
/** As many keys of maximum length as a pod of maximum size tolerates. */
const KEYS = Array.from({ length: 3000 }, (_, index) => `${PREFIX}/${String(index).padStart(63, 'k')}`);

const faultOf = (delta: Delta) =>
  messageFault({
    body: encodeDelta(delta),
    groupId: messageGroupId(delta.ref),
    deduplicationId: deduplicationId(delta),
  });

/** A view of the untainted node `n1` with these pods. */
function viewOf(lists: readonly (readonly Toleration[])[]): SendingView {
  const view = new SendingView(clusterName('c1'), 1);
  view.replaceNodes([liveNode('n1')], at(0));
  view.replacePods(
    lists.map((tolerations, index) => livePod(`u${index}`, { tolerations })),
    at(0),
  );
  return view;
}

describe('the message of a node delta', () => {
  test('contains the facts of as many pods as fit, and the UIDs of the others', () => {
    const padding = fc.integer({ min: 2, max: 400_000 });
    const lists = fc.integer({ min: 0, max: 2 });
    fc.assert(
      fc.property(fc.array(fc.tuple(padding, padding, lists), { maxLength: 12 }), (sizes) => {
        const pods = sizes.map(([name, list, kind], index) =>
          pod(`u${index}`, {
            namespace: 'ü'.repeat(name / 2),
            tolerations: kind === 0 ? [] : [tolerating(kind === 1 ? 'shared' : 'x'.repeat(list), index)],
          }),
        );
        const { delta, body } = deltaMessage(nodeDelta(1, { pods }));
        assert.ok(Buffer.byteLength(body) <= MAX_MESSAGE_BYTES);
        const sent = parseDelta(body);
        assert.ok(sent.kind === 'node');
        assert.deepEqual(sent, delta);
        const others = new Set(sent.others);
        assert.deepEqual(
          sent.pods,
          pods.filter(({ uid }) => !others.has(uid)),
        );
        assert.equal(sent.pods.length + others.size, pods.length);
        const whole = Buffer.byteLength(encodeDelta(nodeDelta(1, { pods })));
        assert.equal(others.size > 0, whole > MAX_MESSAGE_BYTES);
      }),
      { numRuns: 50 },
    );
  });
});

describe('a pod that a node delta lists only by UID', () => {
  const others = [podUid('u1')];

  test('is neither scheduled nor canceled by the node delta', () => {
    assert.equal(forecast(after(nodeDelta(1, { pods: [], others }))), 'none');
    assert.equal(forecast(after(nodeDelta(1), nodeDelta(2, { pods: [], others }))), 'due at 60');
    assert.equal(forecast(after(nodeDelta(1), nodeDelta(2, { taints: [], pods: [], others }))), 'due at 60');
  });

  test('is decided by its own delta, whichever arrives first', () => {
    const whole = nodeDelta(1, { pods: [], others });
    assert.equal(forecast(after(whole, podDelta(2))), 'due at 60');
    assert.equal(forecast(after(podDelta(2), whole)), 'due at 60');
    const untainted = [nodeDelta(3, { taints: [], pods: [], others }), podDelta(4, { taints: [] })];
    assert.equal(forecast(after(nodeDelta(1), ...untainted)), 'canceled');
    assert.equal(forecast(after(nodeDelta(1), ...untainted.reverse())), 'canceled');
  });

  test('keeps the taints of its deleted node', () => {
    const gone = nodeDelta(2, { deletedAt: at(2), pods: [], others });
    assert.deepEqual(
      after(nodeDelta(1), gone).node?.taints.map(({ key }) => key),
      ['a'],
    );
  });
});

test('schedules the other pods of a node that has a pod with thousands of tolerations', () => {
  const hog = KEYS.map((key): Toleration => ({ key, operator: 'Exists', effect: 'NoExecute' }));
  const view = viewOf([...Array.from({ length: 50 }, () => []), hog]);
  const [delta, ...more] = view.upsertNode(liveNode('n1', 'maintenance'), at(1));
  assert.ok(delta?.kind === 'node' && more.length === 0);
  assert.equal(faultOf(delta), undefined);
  assert.equal(delta.others, undefined);
  assert.equal(after(delta).scheduled.size, 51);
});

test('decides every pod of a node with 50 taints and 500 pods with 3,000 tolerations each', () => {
  const tainted = KEYS.filter((_, index) => index % 60 === 0);
  const secondsOf = (podIndex: number, keyIndex: number) => 1000 + ((podIndex * 7 + keyIndex * 13) % 997);
  const view = viewOf(
    Array.from({ length: 500 }, (_, podIndex) =>
      KEYS.map((key, keyIndex) => tolerating(key, secondsOf(podIndex, keyIndex))),
    ),
  );
  const deltas = view.upsertNode(liveNode('n1', ...tainted), at(1));
  for (const delta of deltas) assert.equal(faultOf(delta), undefined);
  const partition = deltas
    .map((delta) => parseDelta(encodeDelta(delta)))
    .reduce((before, delta) => committed(before, planned(before, delta)), after());
  for (let podIndex = 0; podIndex < 500; podIndex++) {
    const seconds = tainted.map((_, index) => secondsOf(podIndex, index * 60));
    const earliest = Math.min(...seconds);
    assert.equal(forecast(partition, `u${podIndex}`), `due at ${1 + earliest}`);
    const because = tainted
      .filter((_, index) => seconds[index] === earliest)
      .map((key) => [key, KEYS.indexOf(key)]);
    const { causes = [] } = recordIn(partition, `u${podIndex}`) ?? {};
    assert.deepEqual(
      causes.map(({ taint, toleration }) => [taint.key, toleration]),
      because,
    );
  }
});
