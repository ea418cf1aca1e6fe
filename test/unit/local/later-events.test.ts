import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { LaterEvents } from '#functions/local/later-events.ts';
import { clusterName } from '#shared/eviction/identity.ts';

const [one, two] = [clusterName('one'), clusterName('two')];

/** Posts nothing until it is let. */
function held() {
  const { promise, resolve: release } = Promise.withResolvers<void>();
  let begun = 0;
  const post = () => {
    begun += 1;
    return promise;
  };
  return { post, release, begun: () => begun };
}

test('whoever has Events to post goes on before they are posted', async () => {
  const { post, begun } = held();
  await new LaterEvents().post(one, 50, post);
  await nextTurn();
  assert.equal(begun(), 1);
});

test('few passes of a cluster have theirs posted at a time, and none waits for those of another cluster', async () => {
  const [ours, theirs] = [held(), held()];
  const later = new LaterEvents();
  for (let pass = 0; pass < 20; pass++) await later.post(one, 50, ours.post);
  await later.post(two, 50, theirs.post);
  await nextTurn();
  assert.equal(ours.begun(), 8);
  assert.equal(theirs.begun(), 1);
  ours.release();
  theirs.release();
  await later.stop();
  assert.equal(ours.begun(), 20);
});

test('where too many wait they are waited for', async () => {
  const { post, release } = held();
  const later = new LaterEvents();
  for (let pass = 0; pass < 200; pass++) await later.post(one, 100, post);
  let posted = false;
  const posting = later.post(one, 1, post).then(() => {
    posted = true;
  });
  await nextTurn();
  assert.equal(posted, false);
  release();
  await posting;
});

test('a service that stops waits until they are posted', async () => {
  const { post, release } = held();
  const later = new LaterEvents();
  await later.post(one, 50, post);
  let stopped = false;
  const stopping = later.stop().then(() => {
    stopped = true;
  });
  await nextTurn();
  assert.equal(stopped, false);
  release();
  await stopping;
});

test('a service that stops does not wait for ever for an API server that takes none', async () => {
  const later = new LaterEvents();
  await later.post(one, 50, held().post);
  await later.stop(1);
});
