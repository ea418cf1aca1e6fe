import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { beforeEach, describe, test } from 'node:test';
import { ConfigMapQueue } from '#shared/state/objects/config-map-queue.ts';
import { FakeObjects } from '#test/world/fake-objects.ts';

const own = 'taintward-asked-in-cluster';
/** Does not become less when it is packed. */
const large = (bytes: number) => randomBytes(bytes).toString('base64');

describe('what operators ask of the replica that leads', () => {
  let objects: FakeObjects;
  let asked: ConfigMapQueue;
  beforeEach(() => {
    objects = new FakeObjects();
    asked = new ConfigMapQueue(objects, own);
  });

  test('is taken once, in the order in which it was asked, by whoever leads then', async () => {
    await asked.send([{ body: 'a' }, { body: 'b' }]);
    await new ConfigMapQueue(objects, own).send([{ body: 'c' }]);
    assert.deepEqual(await asked.take(), [{ body: 'a' }, { body: 'b' }, { body: 'c' }]);
    assert.deepEqual(await asked.take(), []);
    await asked.send([{ body: 'd' }]);
    assert.deepEqual(await asked.take(), [{ body: 'd' }]);
  });

  test('two that take at once do not take the same', async () => {
    await asked.send([{ body: 'a' }]);
    const taken = await Promise.all([asked.take(), new ConfigMapQueue(objects, own).take()]);
    assert.deepEqual(taken.flat(), [{ body: 'a' }]);
  });

  test('looking for it writes nothing', async () => {
    await asked.take();
    await asked.send([]);
    assert.equal(objects.writes, 0);
  });

  test('what has no room is refused as a whole, and nothing of what waits is lost', async () => {
    await asked.send([{ body: 'a' }]);
    const failures = await asked.send([{ body: 'b' }, { body: large(700_000) }]);
    assert.deepEqual(
      failures.map(({ index, permanent }) => ({ index, permanent })),
      [
        { index: 0, permanent: false },
        { index: 1, permanent: false },
      ],
    );
    assert.deepEqual(await asked.take(), [{ body: 'a' }]);
  });
});
