import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { LaterEvents } from '#shared/engine/evict/later-events.ts';
import { clusterName } from '#shared/eviction/identity.ts';

const [one, two] = [clusterName('one'), clusterName('two')];

/** Returns a post that waits for `release`. */
function held() {
  const { promise, resolve: release } = Promise.withResolvers<void>();
  let begun = 0;
  const post = () => {
    begun += 1;
    return promise;
  };
  return { post, release, begun: () => begun };
}

test('a caller continues before its Events are posted', async () => {
  const { post, begun } = held();
  await new LaterEvents().post(one, 50, post);
  await nextTurn();
  assert.equal(begun(), 1);
});

test('Events of a few passes of a cluster are posted concurrently, without a delay of other clusters', async () => {
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

/** Starts an eviction that lasts until the test ends it. */
function evicting(later: LaterEvents) {
  const { promise, resolve } = Promise.withResolvers<void>();
  const ended = later.ahead(() => promise);
  return {
    end: () => {
      resolve();
      return ended;
    },
  };
}

test('Events are held back during evictions of any cluster', async () => {
  const { post, begun } = held();
  const later = new LaterEvents();
  const [first, second] = [evicting(later), evicting(later)];
  await later.post(one, 1, post);
  await first.end();
  await later.post(two, 1, post);
  await nextTurn();
  assert.equal(begun(), 0);
  await second.end();
  await nextTurn();
  assert.equal(begun(), 2);
});

test('continuous evictions hold Events back for a single second', async (context) => {
  context.mock.timers.enable({ apis: ['setTimeout'] });
  const { post, begun } = held();
  const later = new LaterEvents();
  evicting(later);
  await later.post(one, 1, post);
  context.mock.timers.tick(999);
  await nextTurn();
  assert.equal(begun(), 0);
  context.mock.timers.tick(1);
  await nextTurn();
  assert.equal(begun(), 1);
  await later.post(one, 1, post);
  await nextTurn();
  assert.equal(begun(), 2);
});

test('Events that waited for earlier evictions do not wait for later ones', async () => {
  const { post, begun, release } = held();
  const later = new LaterEvents();
  const earlier = evicting(later);
  for (let pass = 0; pass < 20; pass++) await later.post(one, 1, post);
  await earlier.end();
  const others = evicting(later);
  release();
  await nextTurn();
  assert.equal(begun(), 20);
  await others.end();
});

test('a failed eviction releases the Events', async () => {
  const { post, begun } = held();
  const later = new LaterEvents();
  const failing = later.ahead(async () => {
    await later.post(one, 1, post);
    throw new Error('no');
  });
  await assert.rejects(failing, /^Error: no$/);
  await nextTurn();
  assert.equal(begun(), 1);
});

test('callers wait when too many Events are pending', async () => {
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

test('a service that stops waits until Events are posted', async () => {
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

test('a service that stops posts the Events that are held back', async () => {
  const later = new LaterEvents();
  evicting(later);
  const posted = held();
  await later.post(one, 1, posted.post);
  posted.release();
  await later.stop();
  assert.equal(posted.begun(), 1);
});

test('a service that stops does not wait indefinitely for an unresponsive API server', async () => {
  const later = new LaterEvents();
  await later.post(one, 50, held().post);
  await later.stop(1);
});

test('Events of a cluster whose Events were posted before are held back, too, until a service stops', async () => {
  const later = new LaterEvents();
  await later.post(one, 1, async () => undefined);
  await nextTurn();
  const { post, begun, release } = held();
  const eviction = evicting(later);
  await later.post(one, 1, post);
  await nextTurn();
  assert.equal(begun(), 0);
  const stopped = later.stop();
  release();
  await stopped;
  assert.equal(begun(), 1);
  await eviction.end();
});

test('posted Events no longer count as waiting', async () => {
  const later = new LaterEvents();
  for (let pass = 0; pass < 5; pass++) {
    await later.post(one, 9_000, async () => undefined);
    await nextTurn();
  }
  const { post } = held();
  // It would wait for its own Events.
  await later.post(one, 9_000, post);
});

test('a pass without Events posts nothing', async () => {
  const { post, begun } = held();
  await new LaterEvents().post(one, 0, post);
  await nextTurn();
  assert.equal(begun(), 0);
});
