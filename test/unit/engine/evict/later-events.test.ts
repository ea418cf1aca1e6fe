import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { LaterEvents } from '#shared/engine/evict/later-events.ts';
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

/** An eviction that is under way until it is let end. */
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

test('they are held back while evictions are under way, of whatever cluster', async () => {
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

test('evictions that go on and on hold them back for a second, once', async (context) => {
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

test('what waited for earlier evictions does not wait for later ones', async () => {
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

test('an eviction that fails holds nothing back any more', async () => {
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

test('a service that stops has those posted that are held back', async () => {
  const later = new LaterEvents();
  evicting(later);
  const posted = held();
  await later.post(one, 1, posted.post);
  posted.release();
  await later.stop();
  assert.equal(posted.begun(), 1);
});

test('a service that stops does not wait for ever for an API server that takes none', async () => {
  const later = new LaterEvents();
  await later.post(one, 50, held().post);
  await later.stop(1);
});
