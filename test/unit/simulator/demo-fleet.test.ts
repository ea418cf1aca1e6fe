import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { seedDemoFleet } from '#simulator/demo-fleet.ts';
import { ObjectStore } from '#simulator/objects/store.ts';
import { settableClock, unscoped } from './builders.ts';

const nodesOf = (store: ObjectStore) => store.all('nodes').map(({ metadata }) => metadata.name);

describe('the demo fleet', () => {
  test('is seeded once and does not restore a deleted node', () => {
    const store = new ObjectStore({ clock: settableClock() });
    seedDemoFleet(store);
    store.delete('nodes', unscoped('node-2'));
    seedDemoFleet(store);
    assert.deepEqual(nodesOf(store), ['node-1', 'node-3', 'node-4']);
  });

  test('is completed after an interruption at any point of its seeding', () => {
    const interrupted = new Error('killed');
    for (let changes = 0; changes < 13; changes += 1) {
      let left = changes;
      let dies = true;
      const save = () => {
        if (dies && left === 0) throw interrupted;
        left -= 1;
      };
      const store = new ObjectStore({ clock: settableClock(), save });
      assert.throws(() => seedDemoFleet(store), interrupted);
      dies = false;
      seedDemoFleet(store);
      assert.deepEqual(nodesOf(store), ['node-1', 'node-2', 'node-3', 'node-4']);
      const seeded = (
        ['namespaces', 'deployments', 'statefulsets', 'daemonsets', 'poddisruptionbudgets'] as const
      ).map((resource) => store.all(resource).length);
      assert.deepEqual(seeded, [4, 2, 1, 1, 1]);
    }
  });
});
