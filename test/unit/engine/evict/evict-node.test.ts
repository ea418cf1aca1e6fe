import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Context } from 'aws-lambda';
import { createHandler } from '#functions/evict/handler.ts';
import { encodeRetry, parseDueMessage } from '#shared/aws/due-message.ts';
import { evictNode } from '#shared/engine/evict/evict-node.ts';
import { NODE_MAX_AGE_MS } from '#shared/engine/evict/evict-pod.ts';
import { YOUNG_MS } from '#shared/engine/evict/node-reader.ts';
import { TimerError } from '#shared/engine/timers.ts';
import type { Delta } from '#shared/eviction/facts.ts';
import { clusterName, nodeName, podUid } from '#shared/eviction/identity.ts';
import { plan } from '#shared/eviction/plan.ts';
import { ending } from '#shared/eviction/records.ts';
import type { PodEvent } from '#shared/kubernetes/announcement.ts';
import { StoreError } from '#shared/state/store.ts';
import { liveNode, livePod } from '#test/unit/engine/watch/live-objects.ts';
import { at, nodeDelta, pod, ref, taint, tolerating } from '#test/unit/eviction/builders.ts';
import { inNoTime } from '#test/world/driven-timers.ts';
import type { FakeCluster } from '#test/world/fake-cluster.ts';
import { sqsEvent, sqsRecord } from '#test/world/sqs-event.ts';
import { beforeCalls, benchAfter, due, EvictBench, passes, podsNamed, serverError } from './evict-bench.ts';

const forever = [tolerating('a')];

describe('a due pod', () => {
  test('is marked, deleted by its UID, recorded, reported and counted', async () => {
    const bench = await due(livePod());
    await bench.clock.advanceTo(at(62));
    const requests = bench.requests();
    await bench.pass();
    assert.deepEqual(requests, ['get', 'list', 'patch', 'delete', 'create']);
    assert.deepEqual(bench.deleted, ['u1']);
    assert.equal(bench.cluster.deletions[0]?.meant, 'u1');
    assert.deepEqual(await bench.states(), { u1: 'evicted' });
    assert.deepEqual(
      bench.cluster.events.map(({ message, type }) => `${type} ${message}`),
      ['Normal Marking for deletion Pod default/pod-u1'],
    );
    assert.deepEqual(bench.lateness, [2]);
  });

  test('is marked once for any number of tries to delete it, and reported once after its deletion', async () => {
    const bench = await due(livePod());
    bench.fails('delete', serverError(503), 2);
    await bench.pass();
    await bench.nextTry();
    assert.deepEqual(bench.cluster.events, []);
    const requests = bench.requests();
    await bench.nextTry();
    assert.deepEqual(requests, ['get', 'list', 'delete', 'create']);
    await bench.pass();
    assert.equal(bench.cluster.events.length, 1);
    assert.deepEqual(bench.deleted, ['u1']);
  });

  test('is listed in one request with all others', async () => {
    const bench = await due(...podsNamed(40));
    const requests = bench.requests();
    await bench.pass();
    assert.ok(requests.filter((verb) => verb === 'get').length < 20, String(requests));
    assert.equal(requests.filter((verb) => verb === 'list').length, 1);
    assert.equal(bench.deleted.length, 40);
  });
});

test('makes no request when no pod is due', async () => {
  const bench = await due(livePod());
  const requests = bench.requests();
  await evictNode({ ...ref, node: nodeName('n2') }, bench);
  assert.deepEqual(requests, []);
});

describe('an eviction that the live state contradicts is not executed:', () => {
  passes({
    'the taint is gone': {
      given: ({ cluster }) => cluster.putNode(liveNode()),
      states: { u1: 'canceled' },
      deleted: [],
      events: ['Cancelling deletion of Pod default/pod-u1'],
    },
    'the taint is removed after the pods were listed': {
      given: ({ cluster }) => {
        const listed = Promise.withResolvers<void>();
        beforeCalls(cluster, 'podsOnNode', () => setImmediate(listed.resolve));
        beforeCalls(cluster, 'getNode', () => listed.promise.then(() => cluster.putNode(liveNode())));
      },
      states: { u1: 'canceled' },
      isMarked: false,
    },
    'the pod tolerates the taint now': {
      pods: [livePod('u1', { tolerations: forever })],
      states: { u1: 'canceled' },
    },
  });

  test('the pod tolerates the taint for longer now', async () => {
    const bench = await due(livePod('u1', { tolerations: [tolerating('a', 90)] }));
    assert.deepEqual(await bench.leaves(), { u1: 'scheduled' });
    assert.deepEqual(bench.armed, [at(90)]);
    assert.deepEqual(await bench.leaves(at(90)), { u1: 'evicted' });
  });

  test('a newer delta changed the record meanwhile', async () => {
    const bench = await due(livePod('u1', { tolerations: forever }));
    beforeCalls(bench.cluster, 'getNode', async () => {
      const version = { epoch: 1, sequence: 9 };
      const { revision, scheduled } = await bench.stored();
      const schedule = [...scheduled.values()].map((record) => ({ ...record, version }));
      await bench.store.commit(ref, revision, { schedule, end: [], live: true }, at(60));
    });
    assert.deepEqual(await bench.leaves(), { u1: 'scheduled' });
    assert.deepEqual(bench.cluster.events, []);
  });
});

describe('a delta that arrives during a pass applies:', () => {
  /** Applies a delta before a mark is answered, too late for a delete by the look before it. */
  function changeWhileMarking(bench: EvictBench, delta: Delta): void {
    beforeCalls(bench.cluster, 'markDisrupted', async () => {
      const before = await bench.stored();
      const { node } = plan(before, delta, bench.ruling, { now: at(60) });
      assert.ok(node);
      await bench.store.commit(ref, before.revision, { node, schedule: [], end: [], live: true }, at(60));
      await bench.delay(YOUNG_MS);
    });
  }

  passes({
    'a deleted node had lost its taint before': {
      given: (bench) => {
        bench.cluster.removeNode(ref.node);
        changeWhileMarking(bench, nodeDelta(2, { taints: [] }));
      },
      deleted: [],
    },
    'the taint was removed and returned': {
      given: (bench) => changeWhileMarking(bench, nodeDelta(2, { taints: [taint('a', 30)] })),
      deleted: [],
    },
  });
});

describe('the deleted pod is the evaluated pod:', () => {
  const tolerates = (tolerations = forever) => livePod('u1', { tolerations, disrupted: true });
  passes({
    'a pod that tolerates its taints when it is marked is not deleted': {
      given: (bench) => bench.before('patch', () => bench.cluster.putPod(tolerates())),
      deleted: [],
      states: { u1: 'canceled' },
    },
    'a pod that tolerates its taints after its mark is not deleted': {
      given: (bench) => bench.before('delete', (count) => count === 1 && bench.cluster.putPod(tolerates())),
      states: { u1: 'canceled' },
    },
    'a pod that changes otherwise after its mark is evaluated again, and deleted': {
      given: (bench) =>
        bench.before(
          'delete',
          (count) => count === 1 && bench.cluster.putPod(tolerates([tolerating('a', 60)])),
        ),
      states: { u1: 'evicted' },
    },
    'a deletion that waits too long is not sent, and its node is looked at again': {
      given: (bench) =>
        bench.before('delete', (count) => {
          if (count > 1) return;
          bench.cluster.putNode(liveNode());
          void bench.clock.advanceTo(bench.clock.now() + NODE_MAX_AGE_MS + 1);
        }),
      deleted: [],
      states: { u1: 'canceled' },
    },
  });

  test('a pod that never stops changing is retried later', async () => {
    const bench = await due(livePod());
    bench.before('delete', () => bench.cluster.putPod(livePod('u1', { disrupted: true })));
    assert.deepEqual(await bench.evicts(), []);
    assert.match((await bench.retry())?.error ?? '', /changed, or the call was late, 10 times/);
  });
});

describe('an observation that cancels does not cancel a record that is confirmed meanwhile', () => {
  const newer = { epoch: 2, sequence: 1 };
  for (const [how, fields] of [
    ['by a newer delta', { version: newer, podsVersion: newer }],
    // The facts of the node were known from a newer delta of a pod. Only its list of pods is new.
    ['by a late node delta, under facts that were known', { podsVersion: { epoch: 1, sequence: 9 } }],
  ] as const) {
    test(how, async () => {
      const bench = await due(livePod());
      const { cluster, store } = bench;
      cluster.putNode(liveNode());
      beforeCalls(store, 'load', async (count) => {
        if (count !== 2) return;
        // Before the correction is committed, the taint returns and a relay reports it.
        cluster.putNode(liveNode('n1', 'a'));
        const { revision, node } = await bench.stored();
        assert.ok(node);
        const observed = { ...node, ...fields };
        await store.commit(ref, revision, { node: observed, schedule: [], end: [], live: true }, at(60));
      });
      assert.deepEqual(await bench.pass(), { againInSeconds: 0.25 });
      assert.deepEqual(await bench.states(), { u1: 'scheduled' });
    });
  }
});

describe('a rescheduled pod always has a timer:', () => {
  const putOff = () => due(livePod('u1', { tolerations: [tolerating('a', 90)] }));

  test('its timer is armed before its record moves', async (t) => {
    const bench = await putOff();
    bench.store.conflicts = Number.POSITIVE_INFINITY;
    await assert.rejects(inNoTime(t, () => bench.pass()));
    assert.deepEqual(bench.armed, [at(90)]);
  });

  test('its record does not move when no timer can be armed', async () => {
    const bench = await putOff();
    bench.timerOutages = 1;
    await assert.rejects(bench.pass(), TimerError);
    await bench.pass();
    assert.deepEqual(bench.armed, [at(90)]);
  });
});

describe('an eviction of a pod that is already gone succeeds:', () => {
  const WHEN = [
    ['before the look', undefined],
    ['before its mark', 'patch'],
    ['before its deletion', 'delete'],
  ] as const;
  const HOW: Readonly<Record<string, (cluster: FakeCluster) => void>> = {
    removed: (cluster) => cluster.removePod(livePod()),
    'replaced under its name': (cluster) => cluster.putPod(livePod('u2', { name: 'pod-u1' })),
  };
  for (const [when, verb] of WHEN)
    for (const [how, change] of Object.entries(HOW))
      passes({
        [`${how} ${when}`]: {
          given: (bench) => (verb ? bench.before(verb, () => change(bench.cluster)) : change(bench.cluster)),
          states: { u1: 'already-gone' },
          deleted: [],
          events: [],
        },
      });

  passes({
    'when the pod terminates after an unrecorded eviction': {
      pods: [livePod('u1', { terminating: true, disrupted: true })],
      states: { u1: 'evicted' },
      deleted: [],
    },
  });
});

describe('a request that fails', () => {
  passes({
    'is investigated after a 409 with the right UID, and does not count as gone': {
      given: (bench) => bench.fails('patch', serverError(409), 1),
      states: { u1: 'evicted' },
    },
    'does not undo an eviction if it is the post of its Event, which is dropped': {
      given: (bench) => bench.fails('create', serverError(500)),
      states: { u1: 'evicted' },
      log: ['pod.evicted', 'event.dropped'],
    },
  });

  test('fails the whole node if it is an observation, and all pods are retried together', async () => {
    const unanswered = [undefined, 1];
    for (const [error, waits] of [
      [serverError(500), unanswered],
      [serverError(503), unanswered],
      [serverError(0), unanswered],
      [serverError(401), [true, undefined]],
      [serverError(429), [true, undefined]],
      [serverError(403), [true, undefined]],
    ] as const) {
      const bench = await due(...podsNamed(2));
      bench.fails('get', error, 1);
      assert.equal(await bench.pass(), undefined);
      assert.deepEqual(await bench.states(), { u1: 'scheduled', u2: 'scheduled' });
      const retry = await bench.retry();
      assert.deepEqual(bench.armed, [retry?.nextTryAt]);
      const { node } = await bench.stored();
      assert.deepEqual([node?.retry?.everything, node?.outage?.attempts], waits);
      await bench.nextTry();
      assert.deepEqual(bench.deleted, ['u1', 'u2']);
      assert.equal(await bench.retry(), undefined);
    }
  });

  test('delays the retry of single pods by the longest requested wait', async () => {
    const bench = await due(...podsNamed(5));
    bench.before('delete', (count) => {
      if (count <= 3) throw serverError(500, count * 10);
    });
    await bench.pass();
    const states = Object.values(await bench.states()).sort();
    assert.deepEqual(states, ['evicted', 'evicted', 'scheduled', 'scheduled', 'scheduled']);
    const retry = await bench.retry();
    assert.equal((await bench.stored()).node?.outage, undefined);
    assert.equal(retry?.nextTryAt, at(60) + 30_000);
    assert.match(retry?.error ?? '', /the server answered 500/);
  });

  test('stops the other requests if the server is overloaded', async () => {
    const bench = await due(...podsNamed(200));
    const requests = bench.requests('delete', serverError(429, 7));
    await bench.pass();
    const deletions = requests.filter((verb) => verb === 'delete').length;
    assert.ok(deletions <= 40, `${deletions} deletions tried`);
    assert.equal((await bench.stored()).node?.retry?.everything, true);
  });

  test('prevents no other evictions, also later ones, even if some pods fail indefinitely', async () => {
    const bench = await due(...podsNamed(50));
    const { cluster } = bench;
    const deletePod = cluster.deletePod.bind(cluster);
    cluster.deletePod = async (given, preconditions) => {
      if (Number(preconditions.uid.slice(1)) <= 20) throw serverError(403);
      await deletePod(given, preconditions);
    };
    assert.equal((await bench.evicts()).length, 30);
    assert.deepEqual(await bench.redelivered(), undefined);
    const retry = await bench.retry();
    assert.deepEqual(bench.armed, [retry?.nextTryAt, retry?.nextTryAt]);
  });
});

describe('an eviction that keeps failing', () => {
  const DAY_MS = 24 * 3_600_000;

  test('is tried a few times an hour, by one message at a time, and fails after four days', async () => {
    const bench = await due(...podsNamed(2));
    let tries = 0;
    bench.cluster.beforeRequest = (verb) => {
      if (verb === 'get') tries += 1;
      throw serverError(0);
    };
    await bench.pass();
    for (let rounds = 0; (await bench.retry()) && rounds < 5_000; rounds++) {
      assert.equal(bench.armed.length, rounds + 1);
      await bench.nextTry();
    }
    const tookMs = bench.clock.now() - at(60);
    assert.ok(tookMs >= 4 * DAY_MS && tookMs < 4 * DAY_MS + 300_000, `given up after ${tookMs} ms`);
    assert.ok(tries / (tookMs / 3_600_000) < 20, `${tries} tries`);
    assert.ok((await bench.records()).every(({ gaveUpAt }) => gaveUpAt !== undefined));
    assert.deepEqual(
      bench.deadLetters.sent.map(({ body, attributes }) => [parseDueMessage(body), attributes]),
      [[{ v: 1, kind: 'retry', ...ref, pods: ['u1', 'u2'] }, { reason: 'the server answered 0' }]],
    );
    assert.equal(bench.logged('eviction.failed').length, 2);
    assert.equal(bench.givenUp, 2);
  });

  test('is not tried after it failed, and once by its redriven dead letter, for any number of deliveries', async () => {
    const bench = await due(livePod());
    bench.fails('delete', serverError(403));
    await bench.pass();
    await bench.clock.advanceTo(at(60) + 4 * DAY_MS);
    await bench.nextTry();
    const requests = bench.requests('delete', serverError(403));
    await bench.pass();
    assert.deepEqual(requests, []);
    const [letter] = bench.deadLetters.sent;
    assert.ok(letter);
    const handler = createHandler(bench);
    for (const receives of [1, 2, 3])
      await handler(sqsEvent(sqsRecord(letter.body, { receives })), {} as Context);
    assert.equal(requests.filter((verb) => verb === 'delete').length, 1);
    bench.recovers();
    await handler(sqsEvent(sqsRecord(letter.body)), {} as Context);
    assert.deepEqual(bench.deleted, ['u1']);
  });

  test('does not fail in the try that evicts it', async () => {
    const bench = await due(...podsNamed(2));
    bench.fails('delete', serverError(403), 2);
    await bench.pass();
    await bench.clock.advanceTo(at(60) + 4 * DAY_MS);
    bench.cluster.putPod(livePod('u2', { tolerations: forever }));
    await bench.nextTry();
    assert.deepEqual(await bench.states(), { u1: 'evicted', u2: 'canceled' });
    assert.deepEqual(bench.deadLetters.sent, []);
  });

  test('counts from the beginning once its deadline moved', async () => {
    const bench = await due(livePod());
    bench.fails('delete', serverError(403));
    await bench.pass();
    const longer = [tolerating('a', 5 * 24 * 3600)];
    bench.cluster.putPod(livePod('u1', { tolerations: longer }));
    await bench.nextTry();
    await bench.evicts(at(0) + 5 * DAY_MS);
    assert.equal(bench.givenUp, 0);
    assert.equal((await bench.retry())?.attempts, 1);
  });

  test('needs no retry when it ended before', async () => {
    const bench = await due(livePod());
    bench.fails('delete', serverError(403));
    await bench.pass();
    const ends = (await bench.records()).map((record) => ending(record, { outcome: 'already-gone' }));
    await bench.store.end(ref, ends, bench.clock.now());
    await bench.nextTry();
    assert.equal(await bench.retry(), undefined);
  });

  test('keeps its count while its record is missing temporarily', async () => {
    const bench = await due(livePod());
    bench.fails('any', serverError(0));
    await bench.pass();
    const since = (await bench.retry())?.since;
    bench.store.database.exec(
      "UPDATE objects SET version = version + 1, json = json_set(json, '$.status.records.scheduled', json('[]'))",
    );
    await bench.nextTry();
    assert.equal((await bench.retry())?.since, since);
  });

  test('is tried immediately on request while it waits for its next try, once for any number of deliveries', async () => {
    for (const [verb, error] of [
      ['get', serverError(0)],
      ['delete', serverError(403)],
    ] as const) {
      const bench = await due(livePod());
      bench.fails(verb, error);
      await bench.pass();
      const first = await bench.retry();
      const requests = bench.requests(verb, error);
      const handler = createHandler(bench);
      const body = encodeRetry({ ...ref, pods: [podUid('u1')] });
      for (const receives of [1, 2, 3]) await handler(sqsEvent(sqsRecord(body, { receives })), {} as Context);
      assert.equal(requests.filter((each) => each === verb).length, 1);
      const second = await bench.retry();
      assert.deepEqual([second?.attempts, second?.since], [1, first?.since]);
      assert.equal(bench.cluster.answersElsewhere.length, verb === 'get' ? 1 : 0);
      bench.recovers();
      await handler(sqsEvent(sqsRecord(body)), {} as Context);
      assert.deepEqual(bench.deleted, ['u1']);
    }
  });

  test('is tried again immediately if the server answered while a try got no answer', async () => {
    const bench = await due(livePod());
    bench.fails('any', serverError(0));
    await bench.pass();
    await bench.nextTry();
    const { nextTryAt = 0 } = (await bench.retry()) ?? {};
    await bench.clock.advanceTo(nextTryAt);
    let isFirst = true;
    bench.cluster.beforeRequest = () => {
      if (!isFirst) return;
      isFirst = false;
      throw serverError(0);
    };
    const load = bench.store.load.bind(bench.store);
    bench.store.load = async (...args) => {
      const found = await load(...args);
      bench.store.load = load;
      // The wake arrives while the try is under way.
      const { node } = found;
      assert.ok(node?.outage);
      const outage = { ...node.outage, attempts: 0, nextTryAt: nextTryAt + 1 };
      const change = { node: { ...node, outage }, schedule: [], end: [], live: true };
      await bench.store.commit(ref, found.revision, change, bench.clock.now());
      return found;
    };
    const again = await bench.pass();
    assert.deepEqual(again, { againInSeconds: 0.25 });
    assert.deepEqual(await bench.evicts(nextTryAt + 250), ['u1']);
    assert.equal(await bench.retry(), undefined);
  });
});

describe('a written change is reported although no timer can be armed:', () => {
  test('a cancellation', async () => {
    const bench = await due(...podsNamed(2));
    bench.cluster.putPod(livePod('u1', { tolerations: forever }));
    bench.fails('delete', serverError(500));
    bench.timerOutages = 1;
    await assert.rejects(bench.pass(), TimerError);
    assert.equal((await bench.states())['u1'], 'canceled');
    assert.equal(bench.logged('eviction.canceled').length, 1);
    assert.deepEqual(bench.messages, ['Cancelling deletion of Pod default/pod-u1']);
  });

  test('a failed eviction', async () => {
    const bench = await benchAfter(
      [nodeDelta(1, { pods: [pod('u1'), pod('u2', { tolerations: [tolerating('a', 4 * 24 * 3600)] })] })],
      podsNamed(2),
    );
    bench.fails('delete', serverError(500));
    await bench.pass();
    await bench.clock.advanceTo(at(60) + 5 * 24 * 3_600_000);
    bench.timerOutages = 1;
    await assert.rejects(bench.pass(), TimerError);
    assert.equal(bench.givenUp, 1);
    assert.equal(bench.logged('eviction.failed').length, 1);
  });
});

test('ends the records of an unregistered cluster, with a copy to redrive', async () => {
  const bench = await due(livePod());
  const elsewhere = new EvictBench();
  const other = { ...ref, cluster: clusterName('c2') };
  await elsewhere.stores(other, await bench.stored());
  await evictNode(other, elsewhere);
  const { scheduled: left, ended } = await elsewhere.store.load(other, at(60));
  assert.equal(left.size, 0);
  assert.equal(ended.get(podUid('u1'))?.outcome, 'unregistered');
  assert.equal(elsewhere.deadLetters.sent.length, 1);
  assert.equal(elsewhere.givenUp, 1);
});

describe('a look at the node', () => {
  const slowMark = (ms: number) => (bench: EvictBench) =>
    beforeCalls(bench.cluster, 'markDisrupted', () => bench.delay(ms));
  for (const [what, reads, given] of [
    ['serves a delete that follows its answer soon', 1, slowMark(YOUNG_MS - 1)],
    ['is repeated for a delete that does not', 2, slowMark(YOUNG_MS)],
    [
      'is as old as the stored state that was loaded before it',
      2,
      (bench) => beforeCalls(bench.clusters, 'api', () => bench.delay(YOUNG_MS)),
    ],
  ] as readonly [string, number, (bench: EvictBench) => void][])
    test(what, async () => {
      const bench = await due(livePod());
      given(bench);
      const requests = bench.requests();
      assert.deepEqual(await bench.evicts(), ['u1']);
      assert.equal(requests.filter((verb) => verb === 'get').length, reads);
    });
});

describe('a long pass', () => {
  test('observes the node again, and cancels pods whose taint was removed meanwhile', async () => {
    const bench = await due(...podsNamed(200));
    const { cluster, clock } = bench;
    cluster.onDeleted = () => {
      if (cluster.deletions.length !== 20) return;
      cluster.putNode(liveNode());
      void clock.advanceTo(clock.now() + NODE_MAX_AGE_MS + 1);
    };
    await bench.pass();
    const states = Object.values(await bench.states());
    const done = states.filter((state) => state === 'evicted').length;
    // Deletions in flight when the taint was removed are at most as many as run concurrently.
    assert.ok(done >= 20 && done <= 20 + 32, `${done} were deleted`);
    assert.equal(states.filter((state) => state === 'canceled').length, 200 - done);
    assert.equal(cluster.deletions.length, done);
  });

  test('shares an observation among all pods that wait for it', async () => {
    const bench = await due(...podsNamed(30));
    let gets = 0;
    bench.cluster.beforeRequest = (verb) => {
      if (verb === 'get') gets += 1;
      if (verb === 'list') void bench.clock.advanceTo(at(61));
    };
    await bench.pass();
    assert.ok(gets < 15, `${gets} looks`);
    assert.equal(bench.deleted.length, 30);
  });

  test('leaves the rest to the next pass when its second observation fails', async () => {
    const bench = await due(...podsNamed(30));
    let gets = 0;
    bench.cluster.beforeRequest = (verb) => {
      if (verb === 'get' && ++gets > 1) throw serverError(0);
      if (verb === 'list') void bench.clock.advanceTo(at(61));
    };
    assert.deepEqual(await bench.evicts(), []);
    bench.recovers();
    await bench.nextTry();
    assert.equal(bench.deleted.length, 30);
  });
});

describe('when the end of a deletion cannot be recorded', () => {
  test('the pod is reported nevertheless, and recorded by the next pass without a second deletion', async () => {
    const bench = await due(livePod());
    const end = bench.store.end.bind(bench.store);
    bench.store.end = () => Promise.reject(new StoreError('the table is away'));
    await assert.rejects(bench.pass(), StoreError);
    assert.equal(bench.cluster.events.length, 1);
    bench.store.end = end;
    assert.deepEqual(await bench.leaves(), { u1: 'already-gone' });
    assert.deepEqual(bench.deleted, ['u1']);
  });

  test('finished deletions are recorded although an unexpected error ended the pass', async () => {
    const bench = await due(...podsNamed(2));
    bench.before('delete', (count) => {
      if (count === 2) throw new TypeError('unforeseen');
    });
    await assert.rejects(bench.pass(), TypeError);
    assert.deepEqual(Object.values(await bench.states()).sort(), ['evicted', 'scheduled']);
  });
});

test('makes one request to an unreachable server, and the others once it answers', async () => {
  const bench = await due(livePod('u1'));
  const { cluster } = bench;
  cluster.breakerOpen = true;
  const getNode = cluster.getNode.bind(cluster);
  cluster.getNode = async (name) => {
    const node = await getNode(name);
    cluster.breakerOpen = false;
    return node;
  };
  cluster.beforeRequest = (verb) => {
    if (cluster.breakerOpen && verb !== 'get') throw serverError(0);
  };
  assert.deepEqual(await bench.evicts(), ['u1']);
});

test('counts an observation after which the server counts as unreachable', async () => {
  const bench = await due(livePod('u1'));
  bench.cluster.beforeRequest = () => {
    bench.cluster.breakerOpen = true;
    throw serverError(0);
  };
  await bench.pass();
  assert.equal(bench.silences, 1);
});

test('rejects for the caller to retry when the table is unreachable', async () => {
  const bench = await due(livePod());
  bench.store.outages = 1;
  await assert.rejects(bench.pass(), StoreError);
});

test('lets the state of a node without taints expire', async () => {
  const bench = await due(...podsNamed(2));
  const { node, revision } = await bench.stored();
  assert.ok(node);
  const untainted = { ...node, taints: [] };
  await bench.store.commit(ref, revision, { node: untainted, schedule: [], end: [], live: false }, at(60));
  bench.cluster.putNode(liveNode());
  assert.deepEqual(await bench.leaves(), { u1: 'canceled', u2: 'canceled' });
  await bench.store.purge(at(60) + 8 * 24 * 3_600_000);
  assert.equal((await bench.stored()).revision, 0);
});

passes({
  'evicts pods of a deleted node by its last taints': {
    given: ({ cluster }) => cluster.removeNode(ref.node),
    deleted: ['u1'],
  },
});

test('two passes that fail at the same time arm a single retry', async () => {
  const bench = await due(livePod('u1'));
  bench.fails('list', serverError(503));
  await Promise.all([bench.pass(), bench.pass()]);
  const retry = await bench.retry();
  assert.deepEqual(bench.armed, [retry?.nextTryAt]);
});

test('logs another installation that evicts there once', async () => {
  const bench = await due(livePod('u1'), livePod('u2'));
  bench.cluster.rivals.push('theirs');
  await bench.pass();
  await bench.pass();
  const logged = bench.logged('cluster.conflicting-installation');
  assert.deepEqual(
    logged.map(({ level, fields }) => [level, fields['cluster'], fields['otherInstallation']]),
    [['warn', ref.cluster, 'theirs']],
  );
  assert.equal(bench.rivals, 1);
});

test('two installations with separate stores evict each pod once, and report it once', async () => {
  const here = await due(...podsNamed(10));
  const there = await due(...podsNamed(10));
  Object.assign(there, { cluster: here.cluster, clusters: here.clusters });
  await Promise.all([here.pass(), there.pass()]);
  assert.equal(here.deleted.length, 10);
  assert.equal(here.cluster.events.length, 10);
  const states = [await here.states(), await there.states()];
  for (const { uid } of podsNamed(10)) {
    assert.deepEqual(states.map((each) => each[uid]).toSorted(), ['already-gone', 'evicted'], uid);
  }
});

test('two concurrent passes evict each pod once', async () => {
  const bench = await due(...podsNamed(10));
  await Promise.all([bench.pass(), bench.pass()]);
  assert.equal(bench.deleted.length, 10);
  assert.ok(
    Object.values(await bench.states()).every((state) => state === 'evicted' || state === 'already-gone'),
  );
  assert.equal(bench.cluster.events.length, 10);
});

test('delayed Events have the time of the eviction', async () => {
  const bench = await due(livePod());
  const skews: number[] = [];
  const createEvent = async (_event: PodEvent, now: number) => {
    skews.push(now);
  };
  Object.assign(bench.cluster, { createEvent });
  const later: (() => Promise<void>)[] = [];
  const laterEvents = {
    async post(_cluster: string, _events: number, post: () => Promise<void>) {
      later.push(post);
    },
  };
  await bench.pass({ rules: bench.rules, laterEvents });
  const wentAt = bench.clock.now();
  assert.deepEqual([bench.deleted, skews], [['u1'], []]);
  await bench.clock.advanceTo(wentAt + 30_000);
  await Promise.all(later.map((post) => post()));
  assert.deepEqual(skews, [wentAt]);
});
