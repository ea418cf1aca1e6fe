import assert from 'node:assert/strict';
import { test } from 'node:test';
import { markingForDeletion, postEvents } from '#shared/engine/evict/events.ts';
import { livePod } from '#test/unit/engine/watch/live-objects.ts';
import { evictBench, podsNamed, serverError } from './evict-bench.ts';

test('an Event is tried three times, and is then dropped and logged', async () => {
  const bench = evictBench();
  let tries = 0;
  bench.cluster.beforeRequest = () => {
    tries += 1;
    throw serverError(500);
  };
  await postEvents(bench.cluster, [markingForDeletion(livePod())], bench);
  assert.equal(tries, 3);
  assert.deepEqual(
    bench.log.lines.map(({ event, fields }) => [event, fields['namespace'], fields['pod']]),
    [['event.dropped', 'default', 'pod-u1']],
  );
});

test('denied Events are tried once each, and logged once for each namespace until one is posted', async () => {
  const bench = evictBench();
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

test('an Event that fails at first is posted', async () => {
  const bench = evictBench();
  let tries = 0;
  bench.cluster.beforeRequest = () => {
    tries += 1;
    if (tries < 3) throw serverError(500);
  };
  await postEvents(bench.cluster, [markingForDeletion(livePod())], bench);
  assert.equal(bench.cluster.events.length, 1);
});

test('an unresponsive server does not get a request for each Event', async () => {
  const bench = evictBench();
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
