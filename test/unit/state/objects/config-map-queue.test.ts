import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { beforeEach, describe, test } from 'node:test';
import { ConfigMapQueue } from '#shared/state/objects/config-map-queue.ts';
import { FakeObjects } from '#test/world/fake-objects.ts';

const own = 'taintward-asked-in-cluster';
/** Random text, which compression does not shorten. */
const large = (bytes: number) => randomBytes(bytes).toString('base64');

describe('requests of operators to the leader', () => {
  let objects: FakeObjects;
  let queue: ConfigMapQueue;
  beforeEach(() => {
    objects = new FakeObjects();
    queue = new ConfigMapQueue(objects, own);
  });

  test('are taken once, in order, by the current leader', async () => {
    await queue.send([{ body: 'a' }, { body: 'b' }]);
    await new ConfigMapQueue(objects, own).send([{ body: 'c' }]);
    assert.deepEqual(await queue.take(), [{ body: 'a' }, { body: 'b' }, { body: 'c' }]);
    assert.deepEqual(await queue.take(), []);
    await queue.send([{ body: 'd' }]);
    assert.deepEqual(await queue.take(), [{ body: 'd' }]);
  });

  test('are not taken twice by concurrent callers', async () => {
    await queue.send([{ body: 'a' }]);
    const taken = await Promise.all([queue.take(), new ConfigMapQueue(objects, own).take()]);
    assert.deepEqual(taken.flat(), [{ body: 'a' }]);
  });

  test('are looked up without a write', async () => {
    await queue.take();
    await queue.send([]);
    assert.equal(objects.writes, 0);
  });

  test('are rejected as a whole without room, and waiting requests remain', async () => {
    await queue.send([{ body: 'a' }]);
    const failures = await queue.send([{ body: 'b' }, { body: large(700_000) }]);
    assert.deepEqual(
      failures.map(({ index, permanent }) => ({ index, permanent })),
      [
        { index: 0, permanent: false },
        { index: 1, permanent: false },
      ],
    );
    assert.deepEqual(await queue.take(), [{ body: 'a' }]);
  });
});
