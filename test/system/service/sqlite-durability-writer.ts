import { writeSync } from 'node:fs';
import { clusterName, nodeName } from '#shared/eviction/identity.ts';
import { openState } from '#shared/state/sqlite/sqlite-state.ts';
import { aNode, NOW, someRecords } from '#test/contracts/partition-builders.ts';

/** Commits to the given state directory indefinitely, records and rules in turn, and prints each commit when it is done. */
const [directory = ''] = process.argv.slice(2);
const { store, rulesStore } = openState(directory);
rulesStore.stopIfLost(NOW);
const ref = { cluster: clusterName('c'), node: nodeName('n') };
const entry = { actor: 'anna', at: NOW, cluster: ref.cluster, kind: 'stop', message: 'stopped' } as const;
for (let revision = 0; ; revision++) {
  const node = aNode({ version: { epoch: 1, sequence: revision + 1 } });
  await store.commit(ref, revision, { node, schedule: someRecords(2), end: [], live: true }, NOW);
  await rulesStore.changeOrders(
    ref.cluster,
    { revision, stops: [], holds: [] },
    { stops: [], holds: [] },
    entry,
  );
  writeSync(process.stdout.fd, `${revision + 1}\n`);
}
