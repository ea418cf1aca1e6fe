import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { clusterName, nodeName } from '#shared/eviction/identity.ts';
import { openState } from '#shared/state/sqlite/sqlite-state.ts';
import { NOW } from '#test/contracts/partition-builders.ts';
import { Child } from '#test/world/child.ts';

const WRITER = fileURLToPath(new URL('./sqlite-durability-writer.ts', import.meta.url));
/** The writer is killed when it has printed this many commits. */
const COMMITS = 50;

test('a killed process has lost no commit that it reported, and left none half done', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'store-'));
  let written = 0;
  const writer = new Child(process.execPath, [WRITER, directory], {
    onLine: (line) => {
      written = Number(line);
      if (written === COMMITS) writer.signal('SIGKILL');
    },
  });
  try {
    await writer.exit;
    const { store, rulesStore } = openState(directory);
    const ref = { cluster: clusterName('c'), node: nodeName('n') };
    const lost = rulesStore.stopIfLost(NOW);
    const { revision, node, scheduled } = await store.load(ref, NOW);
    const { orders } = await rulesStore.read(ref.cluster);
    const audit = await rulesStore.audit({ from: 0, to: NOW + 1 });
    rulesStore.close();
    store.close();
    assert.ok(written >= COMMITS);
    assert.ok(revision >= written, `${written} commits were told of, ${revision} are there`);
    assert.equal(node?.version.sequence, revision);
    assert.equal(scheduled.size, 2 * revision);
    assert.ok(
      orders.revision >= written,
      `${written} changes of rules were reported, ${orders.revision} are there`,
    );
    assert.equal(audit.length, orders.revision);
    assert.equal(lost, undefined);
  } finally {
    await writer.kill();
    rmSync(directory, { recursive: true });
  }
});
