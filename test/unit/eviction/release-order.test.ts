import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { podUid } from '#shared/eviction/identity.ts';
import { type HeldPod, releaseOrder } from '#shared/eviction/release-order.ts';

const pod = (uid: string, dueAt: number, owner?: string, namespace = 'default'): HeldPod => ({
  uid: podUid(uid),
  dueAt,
  namespace,
  owner: owner === undefined ? undefined : { kind: 'ReplicaSet', name: owner },
});

describe('the release order of held pods', () => {
  test('follows the deadlines, with one pod of each owner in a round', () => {
    const order = releaseOrder([
      pod('web-2', 2, 'web'),
      pod('web-1', 1, 'web'),
      pod('db-1', 3, 'db'),
      pod('web-3', 4, 'web'),
      pod('db-2', 5, 'db'),
    ]);
    assert.deepEqual(order, ['web-1', 'db-1', 'web-2', 'db-2', 'web-3']);
  });

  test('treats pods without an owner, and equal owner names in two namespaces, as separate owners', () => {
    const order = releaseOrder([
      pod('a', 1, 'web'),
      pod('b', 2, 'web', 'other'),
      pod('c', 3),
      pod('d', 4),
      pod('e', 5, 'web'),
    ]);
    assert.deepEqual(order, ['a', 'b', 'c', 'd', 'e']);
  });

  test('follows the UIDs for equal deadlines, in any input order', () => {
    const [a, b, c] = [pod('a', 1), pod('b', 1), pod('c', 1)];
    for (const given of [
      [a, b, c],
      [c, b, a],
      [b, c, a],
    ])
      assert.deepEqual(releaseOrder(given), ['a', 'b', 'c']);
  });

  const pods = fc
    .array(fc.record({ dueAt: fc.nat({ max: 20 }), owner: fc.constantFrom('x', 'y', 'z', undefined) }), {
      maxLength: 60,
    })
    .map((list) => list.map(({ dueAt, owner }, index) => pod(`u${index}`, dueAt, owner)));

  test('contains each pod once, and never takes two more pods from an owner than from another that still has pods', () => {
    fc.assert(
      fc.property(pods, (given) => {
        const order = releaseOrder(given);
        assert.deepEqual([...order].sort(), given.map(({ uid }) => uid).sort());
        const ownerOf = new Map(given.map(({ uid, owner }) => [uid, owner?.name ?? uid]));
        const left = Map.groupBy(given, ({ uid, owner }) => owner?.name ?? uid);
        const total = new Map([...left].map(([name, list]) => [name, list.length]));
        const gone = new Map([...left.keys()].map((name) => [name, 0]));
        for (const uid of order) {
          const name = String(ownerOf.get(uid));
          gone.set(name, (gone.get(name) ?? 0) + 1);
          for (const [other, lost] of gone) {
            if (lost < (total.get(other) ?? 0)) assert.ok((gone.get(name) ?? 0) - lost <= 1);
          }
        }
      }),
    );
  });
});
