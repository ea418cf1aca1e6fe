import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import {
  announce,
  blockedEviction,
  cancellingDeletion,
  countingDown,
  gaveUpDeletion,
  heldBack,
  markingForDeletion,
  postEvents,
} from '#shared/engine/evict/events.ts';
import { countdownOf } from '#shared/engine/news.ts';
import { clusterName } from '#shared/eviction/identity.ts';
import { StoreError } from '#shared/state/store.ts';
import { livePod } from '#test/unit/engine/watch/live-objects.ts';
import { after, at, nodeDelta, recordIn, ref } from '#test/unit/eviction/builders.ts';
import { EvictBench, podsNamed, serverError } from './evict-bench.ts';

test('an Event is tried three times, and is then dropped and logged', async () => {
  for (const failures of [2, 3]) {
    const bench = new EvictBench();
    const requests = bench.requests();
    const count = bench.cluster.beforeRequest;
    bench.cluster.beforeRequest = (verb) => {
      count(verb);
      if (requests.length <= failures) throw serverError(500);
    };
    await postEvents(bench.cluster, [markingForDeletion(livePod())], bench);
    assert.deepEqual([requests.length, bench.cluster.events.length], [3, 3 - failures]);
    assert.deepEqual(
      bench.log.lines.map(({ event, fields }) => [event, fields['namespace'], fields['pod']]),
      failures === 3 ? [['event.dropped', 'default', 'pod-u1']] : [],
    );
  }
});

test('denied Events are tried once each, and logged once for each namespace until one is posted', async () => {
  const bench = new EvictBench();
  const pods = podsNamed(4).map((pod, index) => (index === 0 ? { ...pod, namespace: 'team' } : pod));
  let tries = 0;
  let isDenied = true;
  bench.cluster.beforeRequest = () => {
    tries += 1;
    if (isDenied) throw serverError(403);
  };
  const post = () => postEvents(bench.cluster, pods.map(markingForDeletion), bench);
  const logged = () => bench.log.lines.map(({ event, fields }) => `${event} ${fields['namespace']}`);
  await post();
  await post();
  assert.equal(tries, 8);
  assert.deepEqual(logged().toSorted(), ['event.dropped default', 'event.dropped team']);
  isDenied = false;
  await post();
  assert.equal(bench.cluster.events.length, 4);
  isDenied = true;
  await post();
  assert.equal(logged().length, 4);
});

test('an unresponsive server does not get a request for each Event', async () => {
  const bench = new EvictBench();
  let tries = 0;
  bench.cluster.createEvent = async () => {
    tries += 1;
    await new Promise((resolve) => setImmediate(resolve));
    throw serverError(0);
  };
  await postEvents(bench.cluster, podsNamed(100).map(markingForDeletion), bench);
  assert.ok(tries <= 16, `${tries} tries`);
  assert.equal(bench.log.lines.length, 100);
});

test('an Event of the built-in controller has its reason and message, and a key for each change of a pod', () => {
  const whole = { pod: { namespace: 'default', name: 'pod-u1' }, reason: 'TaintManagerEviction' };
  const pod = 'Pod default/pod-u1';
  assert.deepEqual(markingForDeletion(livePod()), {
    ...whole,
    type: 'Normal',
    key: 'u1/marking',
    message: `Marking for deletion ${pod}`,
  });
  assert.deepEqual(cancellingDeletion(livePod(), { epoch: 1, sequence: 20 }), {
    ...whole,
    type: 'Normal',
    key: 'u1/cancelling/1-20',
    message: `Cancelling deletion of ${pod}`,
  });
  assert.deepEqual(gaveUpDeletion(livePod()), {
    ...whole,
    type: 'Warning',
    key: 'u1/gave-up',
    message: `Failed to delete ${pod}: retries exhausted. To retry, run "taintward retry"`,
  });
});

test('an Event of Taintward has a key for each change of a pod', () => {
  const record = recordIn(after(nodeDelta(1)));
  assert.ok(record);
  const held = { ...record, held: { by: { kind: 'stopped', scope: 'cluster' }, since: at(61) } } as const;
  const keys = [
    countingDown({ ...countdownOf(record), moved: false }, false),
    heldBack(record, { kind: 'observe' }),
    heldBack(held, { kind: 'hold', id: 'h1' }),
    heldBack(held, { kind: 'stopped', scope: 'fleet' }),
    blockedEviction(record, 'budget'),
  ].map(({ key }) => key);
  const due = at(60);
  assert.deepEqual(keys, [
    `u1/countdown/${due}`,
    `u1/would/${due}`,
    ...['hold', 'stopped'].map((kind) => `u1/held/${kind}/${due}/${at(61)}`),
    `u1/blocked/${due}`,
  ]);
});

describe('announced decisions', () => {
  const record = recordIn(after(nodeDelta(1)));
  assert.ok(record);
  const countdowns = [{ ...countdownOf(record), moved: false }];
  const canceled = [{ version: { epoch: 1, sequence: 20 }, pods: [livePod()] }];

  test('are posted, and only countdowns need the rules', async () => {
    const bench = new EvictBench();
    const keys = () => bench.cluster.events.map(({ key }) => key);
    const unruled = { ...bench, rules: () => Promise.reject(new Error('away')) };
    await announce(ref, { canceled, countdowns: [] }, unruled);
    assert.deepEqual(keys(), ['u1/cancelling/1-20']);
    await assert.rejects(announce(ref, { canceled, countdowns }, unruled), /away/);
    await announce(ref, { canceled: [], countdowns }, bench);
    assert.deepEqual(keys().slice(1), [`u1/countdown/${at(60)}`]);
  });

  test('are dropped and logged only if the cluster is no longer managed', async () => {
    const bench = new EvictBench();
    const unknown = { ...ref, cluster: clusterName('unknown') };
    await announce(unknown, { canceled, countdowns }, bench);
    assert.deepEqual(
      bench.log.lines.map(({ event, fields }) => [event, fields['message']]),
      [
        ['event.dropped', 'Cancelling deletion of Pod default/pod-u1'],
        ['event.dropped', countdowns.map((each) => countingDown(each, false).message)[0]],
      ],
    );
    const api = () => Promise.reject(new StoreError('away'));
    await assert.rejects(
      announce(ref, { canceled, countdowns }, { ...bench, clusters: { api } }),
      StoreError,
    );
  });
});
