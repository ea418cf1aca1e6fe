import assert from 'node:assert/strict';
import { test } from 'node:test';
import { clusterName, podUid } from '#shared/eviction/identity.ts';
import { kubernetesHistory } from '#shared/state/objects/kubernetes-history.ts';
import { KubernetesStore } from '#shared/state/objects/kubernetes-store.ts';
import { historyContract } from '#test/contracts/history-contract.ts';
import { anEnding, aRecord, aRef, NOW } from '#test/contracts/partition-builders.ts';
import { FakeObjects } from '#test/world/fake-objects.ts';

const own = clusterName('in-cluster');

function underTest() {
  const store = new KubernetesStore({ objects: new FakeObjects(), own });
  const history = kubernetesHistory(store, new FakeObjects());
  return { store, history, notes: history };
}

historyContract('kubernetesHistory', async () => ({ ...underTest(), close: async () => undefined }));

test('keeps the latest removed pods when there are more than one object holds', async () => {
  const { store, history } = underTest();
  const ref = aRef(own);
  const [first, last] = [aRecord({ name: 'first' }), aRecord({ name: 'last' })];
  await store.end(ref, [anEnding(first), anEnding(last)], NOW);
  const many = Array.from({ length: 5_000 }, (_, index) => ({ uid: podUid(`u${index}`), at: NOW }));
  await history.noteGone(own, [{ uid: first.uid, at: NOW + 1 }, ...many]);
  await history.noteGone(own, [{ uid: last.uid, at: NOW + 2 }]);
  const entries = await Array.fromAsync(history.entries({ cluster: own, from: NOW, to: NOW + 9 }));
  const gone = entries
    .filter(({ event }) => event === 'evicted')
    .map(({ pod, removedAt }) => [pod, removedAt]);
  assert.deepEqual(Object.fromEntries(gone), { first: undefined, last: NOW + 2 });
});
