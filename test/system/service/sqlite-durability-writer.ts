import { writeSync } from 'node:fs';
import { clusterName, nodeName } from '#shared/eviction/identity.ts';
import { SqliteStore } from '#shared/state/sqlite/sqlite-store.ts';
import { aNode, NOW, someRecords } from '#test/contracts/partition-builders.ts';

/** Commits to the given database indefinitely, and prints each commit when it is done. */
const [path = ''] = process.argv.slice(2);
const store = new SqliteStore({ path });
const ref = { cluster: clusterName('c'), node: nodeName('n') };
for (let revision = 0; ; revision++) {
  const node = aNode({ version: { epoch: 1, sequence: revision + 1 } });
  await store.commit(ref, revision, { node, schedule: someRecords(2), end: [], live: true }, NOW);
  writeSync(process.stdout.fd, `${revision + 1}\n`);
}
