import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import type { Context, SQSRecord } from 'aws-lambda';
import {
  createHandler as createDeltaHandler,
  DELTA_BATCH_SIZE,
  DELTA_RECORD_DEADLINE_MS,
} from '#functions/deltas/handler.ts';
import { encodeDelta, messageGroupId } from '#shared/aws/delta-message.ts';
import { DELTA_MAX_RECEIVES, QUEUES } from '#shared/aws/queue-set.ts';
import type { Delta } from '#shared/eviction/facts.ts';
import { type ClusterName, clusterName, type NodeRef, nodeName } from '#shared/eviction/identity.ts';
import { StoreError } from '#shared/state/store.ts';
import { outcomesOf } from '#test/contracts/partition-builders.ts';
import { at, nodeDelta, pod, podDelta, podGone, ref, taint } from '#test/unit/eviction/builders.ts';
import { driveTimers } from '#test/world/driven-timers.ts';
import { sqsEvent, sqsRecord } from '#test/world/sqs-event.ts';
import { type ScriptedWorld, scriptedWorld } from './scripted-world.ts';

const CONTEXT = {} as Context;
const other: NodeRef = { ...ref, node: nodeName('n2') };

const message = (messageId: string, delta: Delta, receives = 1): SQSRecord =>
  sqsRecord(encodeDelta(delta), { messageId, receives, groupId: messageGroupId(delta.ref) });

/** Returns the IDs of the messages that the handler returns to the queue. */
async function failed(
  handler: ReturnType<typeof createDeltaHandler>,
  ...records: readonly SQSRecord[]
): Promise<readonly string[]> {
  const response = await handler(sqsEvent(...records), CONTEXT);
  return (response?.batchItemFailures ?? []).map(({ itemIdentifier }) => itemIdentifier);
}

async function stateOf(world: ScriptedWorld, nodeRef: NodeRef): Promise<readonly string[]> {
  const partition = await world.store.load(nodeRef, at(0));
  const taints = (partition.node?.taints ?? []).map(({ key }) => key);
  return [...taints, ...Object.entries(outcomesOf(partition)).map((state) => state.join(' '))];
}

/** Makes every load of one node's partition fail, or the given number of loads. */
function breakNode(world: ScriptedWorld, node: NodeRef, times = Number.POSITIVE_INFINITY): void {
  const load = world.store.load.bind(world.store);
  let left = times;
  world.store.load = (nodeRef, scope) => {
    if (nodeRef.node === node.node && left-- > 0) return Promise.reject(new Error('broken'));
    return load(nodeRef, scope);
  };
}

describe('a batch', () => {
  test('applies the deltas of each node in order', async () => {
    const world = scriptedWorld();
    const handler = createDeltaHandler(world);
    const b = nodeDelta(2, { taints: [taint('b')] });
    assert.deepEqual(await failed(handler, message('1', nodeDelta(1)), message('2', b)), []);
    assert.deepEqual(await stateOf(world, ref), ['b', 'u1 scheduled']);
    assert.deepEqual(world.retries, []);
  });

  test('returns the rest of a node after one of its messages failed, and continues with other nodes', async () => {
    const world = scriptedWorld();
    breakNode(world, ref, 1);
    const records = [
      message('1', nodeDelta(1)),
      message('2', nodeDelta(1, { ref: other })),
      message('3', nodeDelta(2, { taints: [] })),
      message('4', nodeDelta(2, { ref: other, taints: [taint('b')] })),
    ];
    assert.deepEqual(await failed(createDeltaHandler(world), ...records), ['1', '3']);
    assert.deepEqual(await stateOf(world, ref), []);
    assert.deepEqual(await stateOf(world, other), ['b', 'u1 scheduled']);
  });

  test('reports every message as failed instead of throwing', async () => {
    const world = scriptedWorld();
    breakNode(world, ref);
    assert.deepEqual(await failed(createDeltaHandler(world), message('1', nodeDelta(1))), ['1']);
  });
});

describe('a failed message', () => {
  const handled = async (receives: number) => {
    const world = scriptedWorld();
    world.timerOutages = 1;
    await failed(createDeltaHandler(world), message('1', nodeDelta(1), receives));
    return world;
  };

  test('is received again after an increasing delay', async () => {
    const seconds: number[] = [];
    for (let receives = 1; receives < DELTA_MAX_RECEIVES; receives++) {
      const { retries } = await handled(receives);
      seconds.push(...retries.map((retry) => retry.seconds));
    }
    assert.deepEqual(seconds, [1, 6, 36, 216]);
  });

  test('moves to the dead-letter queue immediately after its last attempt, so that its node continues', async () => {
    const { retries } = await handled(DELTA_MAX_RECEIVES);
    assert.deepEqual(retries, [{ receiptHandle: '1', seconds: 0 }]);
  });

  test('logs the reason', async () => {
    const { log } = await handled(3);
    const line = log.lines.find(({ event }) => event === 'message.retrying');
    assert.equal(line?.fields['node'], 'n1');
    assert.equal(line?.fields['receiveCount'], 3);
    assert.match(String(line?.fields['error']), /no timer could be armed/);
  });

  test('succeeds at the next attempt', async () => {
    const world = await handled(1);
    assert.deepEqual(await failed(createDeltaHandler(world), message('1', nodeDelta(1), 2)), []);
    assert.deepEqual(world.armed, [at(60)]);
  });
});

describe("a delta of a sender that never held the cluster's lease", () => {
  const sentBy = (senderId: string, messageId: string, delta: Delta): SQSRecord =>
    sqsRecord(encodeDelta(delta), { messageId, senderId, groupId: messageGroupId(delta.ref) });
  const guarded = () => {
    const world = scriptedWorld();
    return Object.assign(world, {
      canSend: async (cluster: ClusterName, senderId: string) =>
        cluster === ref.cluster && senderId === 'AROARELAY:1',
    });
  };

  test('changes nothing and becomes a dead letter that names its sender', async () => {
    const world = guarded();
    const handler = createDeltaHandler(world);
    assert.deepEqual(await failed(handler, sentBy('AROAOTHER:9', '1', nodeDelta(1))), []);
    assert.deepEqual(await stateOf(world, ref), []);
    const [letter] = world.deadLetters.sent;
    assert.equal(letter?.body, encodeDelta(nodeDelta(1)));
    assert.match(
      letter?.attributes?.['reason'] ?? '',
      /^delta rejected: AROAOTHER:9 sent it for cluster c1, but never held that cluster's lease\. Identify the sender/,
    );
    const line = world.log.lines.find(({ event }) => event === 'message.rejected');
    assert.equal(line?.fields['messageId'], '1');
  });

  test("does not delay the deltas of the cluster's relay", async () => {
    const world = guarded();
    const records = [
      sentBy('AROAOTHER:9', '1', nodeDelta(2, { taints: [] })),
      sentBy('AROARELAY:1', '2', nodeDelta(1)),
    ];
    assert.deepEqual(await failed(createDeltaHandler(world), ...records), []);
    assert.deepEqual(await stateOf(world, ref), ['a', 'u1 scheduled']);
  });

  test("is retried while the lease can't be read", async () => {
    const world = Object.assign(scriptedWorld(), {
      canSend: () => Promise.reject(new StoreError('the table is away')),
    });
    assert.deepEqual(await failed(createDeltaHandler(world), sentBy('AROARELAY:1', '1', nodeDelta(1))), [
      '1',
    ]);
    assert.deepEqual(world.deadLetters.sent, []);
  });
});

describe("a delta in another node's message group", () => {
  const foreign = { ...ref, cluster: clusterName('c2') };
  const intruder = sqsRecord(encodeDelta(nodeDelta(1, { ref: foreign })), {
    messageId: '1',
    senderId: 'AROAOTHER:9',
    groupId: messageGroupId(ref),
  });

  test('becomes a dead letter that names the actual group', async () => {
    const world = scriptedWorld();
    assert.deepEqual(await failed(createDeltaHandler(world), intruder), []);
    assert.deepEqual(await stateOf(world, foreign), []);
    const [letter] = world.deadLetters.sent;
    assert.equal(letter?.groupId, messageGroupId(ref));
    assert.match(
      letter?.attributes?.['reason'] ?? '',
      /^delta rejected: AROAOTHER:9 sent it, a delta of node n1 of cluster c2, in the message group of another node\. Identify the sender/,
    );
  });

  test("does not delay other deltas of the group, even if it can never be applied and its lease can't be read", async () => {
    const world = Object.assign(scriptedWorld(), {
      canSend: async (cluster: ClusterName) => {
        if (cluster === foreign.cluster) throw new StoreError('its lease is damaged');
        return true;
      },
    });
    assert.deepEqual(await failed(createDeltaHandler(world), intruder, message('2', nodeDelta(1))), []);
    assert.deepEqual(await stateOf(world, ref), ['a', 'u1 scheduled']);
    assert.equal(world.deadLetters.sent.length, 1);
  });

  test('is not written together with pods of the group', async () => {
    const world = scriptedWorld();
    const pods = [
      message('2', podDelta(1, { pod: pod('u1') })),
      message('3', podDelta(3, { pod: pod('u3') })),
    ];
    const inserted = sqsRecord(encodeDelta(podDelta(2, { ref: foreign, pod: pod('u2') })), {
      messageId: '9',
      groupId: messageGroupId(ref),
    });
    const [first, last] = pods;
    assert.ok(first && last);
    assert.deepEqual(await failed(createDeltaHandler(world), first, inserted, last), []);
    assert.deepEqual(await stateOf(world, ref), ['a', 'u1 scheduled', 'u3 scheduled']);
    assert.equal(world.deadLetters.sent.length, 1);
  });
});

describe('an unreadable message', () => {
  const broken = (body: string) => sqsRecord(body, { messageId: '1', groupId: messageGroupId(ref) });

  test('becomes a dead letter with the reason, and its node continues', async () => {
    const world = scriptedWorld();
    const records = [broken('{"v":1}'), message('2', nodeDelta(1))];
    assert.deepEqual(await failed(createDeltaHandler(world), ...records), []);
    assert.deepEqual(await stateOf(world, ref), ['a', 'u1 scheduled']);
    const [letter] = world.deadLetters.sent;
    assert.equal(letter?.body, '{"v":1}');
    assert.equal(letter.groupId, messageGroupId(ref));
    assert.match(letter.attributes?.['reason'] ?? '', /^delta message rejected: kind: /);
  });
});

describe('consecutive pods of one node', () => {
  const podMessages = (uids: readonly string[], receives = 1) =>
    uids.map((uid, index) => message(uid, podDelta(index + 1, { pod: pod(uid) }), receives));

  test('are written together', async () => {
    const world = scriptedWorld();
    assert.deepEqual(await failed(createDeltaHandler(world), ...podMessages(['u1', 'u2', 'u3'])), []);
    assert.deepEqual(await stateOf(world, ref), ['a', 'u1 scheduled', 'u2 scheduled', 'u3 scheduled']);
    assert.equal(world.store.commits, 1);
    assert.deepEqual(world.armed, [at(60)]);
  });

  test('are written together even with pods of another node between them', async () => {
    const world = scriptedWorld();
    const [first, second] = podMessages(['u1', 'u2']);
    assert.ok(first && second);
    const between = message('other', podDelta(1, { ref: other }));
    assert.deepEqual(await failed(createDeltaHandler(world), first, between, second), []);
    assert.equal(world.store.commits, 2);
    assert.deepEqual(await stateOf(world, other), ['a', 'u1 scheduled']);
  });

  test('are written separately if they are the same pod', async () => {
    const world = scriptedWorld();
    const records = [
      ...podMessages(['u1', 'u2']),
      message('gone', podGone(3)),
      message('u3', podDelta(4, { pod: pod('u3') })),
    ];
    assert.deepEqual(await failed(createDeltaHandler(world), ...records), []);
    assert.deepEqual(await stateOf(world, ref), ['a', 'u1 already-gone', 'u2 scheduled', 'u3 scheduled']);
    assert.equal(world.store.commits, 2);
  });

  test('exclude unreadable messages and those of other senders, and only these become dead letters', async () => {
    const world = Object.assign(scriptedWorld(), {
      canSend: async (_: ClusterName, senderId: string) => senderId !== 'AROAOTHER:9',
    });
    const [u1, u2, u3] = podMessages(['u1', 'u2', 'u3']);
    assert.ok(u1 && u2 && u3);
    const groupId = messageGroupId(ref);
    const unread = sqsRecord('?', { messageId: 'unread', groupId });
    const foreign = sqsRecord(encodeDelta(podDelta(9, { pod: pod('u9') })), {
      messageId: 'foreign',
      senderId: 'AROAOTHER:9',
      groupId,
    });
    assert.deepEqual(await failed(createDeltaHandler(world), u1, unread, u2, foreign, u3), []);
    assert.deepEqual(await stateOf(world, ref), ['a', 'u1 scheduled', 'u2 scheduled', 'u3 scheduled']);
    assert.deepEqual(
      world.deadLetters.sent.map(({ deduplicationId }) => deduplicationId),
      ['unread', 'foreign'],
    );
  });

  test('are returned together and retried one by one, so that the faulty pod delays none before it', async () => {
    const world = scriptedWorld();
    const { commit } = world.store;
    world.store.commit = (node, revision, change, now) =>
      change.schedule.some(({ uid }) => uid === 'u2')
        ? Promise.reject(new StoreError('too large'))
        : commit.call(world.store, node, revision, change, now);
    const handler = createDeltaHandler(world);
    const uids = ['u1', 'u2', 'u3'];
    assert.deepEqual(await failed(handler, ...podMessages(uids)), uids);
    assert.deepEqual(await stateOf(world, ref), []);
    assert.deepEqual(await failed(handler, ...podMessages(uids, 2)), ['u2', 'u3']);
    assert.deepEqual(await stateOf(world, ref), ['a', 'u1 scheduled']);
  });
});

test('pods and their removals are received from the other queue', async () => {
  const world = scriptedWorld();
  const handler = createDeltaHandler(world);
  assert.deepEqual(await failed(handler, message('1', podDelta(1)), message('2', podGone(2))), []);
  assert.deepEqual(await stateOf(world, ref), ['a', 'u1 already-gone']);
});

describe('a record that takes too long', () => {
  async function handledInTime(context: TestContext, world: ScriptedWorld): Promise<readonly string[]> {
    const time = driveTimers(context);
    const records = [message('1', nodeDelta(1)), message('2', nodeDelta(1, { ref: other }))];
    const handling = failed(createDeltaHandler(world), ...records);
    await time.pass(DELTA_RECORD_DEADLINE_MS);
    return handling;
  }

  test('returns to the queue and does not delay the others', async (context) => {
    const world = scriptedWorld();
    const load = world.store.load.bind(world.store);
    world.store.load = (of, scope) => (of.node === ref.node ? new Promise(() => undefined) : load(of, scope));
    assert.deepEqual(await handledInTime(context, world), ['1']);
    assert.deepEqual(await stateOf(world, other), ['a', 'u1 scheduled']);
  });

  test('can fail later without ending the process', async (context) => {
    const world = scriptedWorld();
    const { promise, reject } = Promise.withResolvers<never>();
    world.store.load = () => promise;
    assert.deepEqual(await handledInTime(context, world), ['1', '2']);
    reject(new Error('late'));
    await new Promise(setImmediate);
  });

  test('leaves the function time for a whole batch of its kind', () => {
    const longestMs = DELTA_BATCH_SIZE * DELTA_RECORD_DEADLINE_MS;
    assert.ok(longestMs < QUEUES.nodeDeltas.functionTimeoutSeconds * 1000);
    assert.ok(longestMs < QUEUES.podDeltas.functionTimeoutSeconds * 1000);
  });
});
