import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { clusterName, nodeName } from '#shared/eviction/identity.ts';
import { SqliteStore } from '#shared/state/sqlite/sqlite-store.ts';
import { NOW } from '#test/contracts/partition-builders.ts';
import { Child } from '#test/world/child.ts';

const WRITER = fileURLToPath(new URL('./sqlite-durability-writer.ts', import.meta.url));
/** The writer is killed when it has printed this many commits. */
const COMMITS = 50;

test('a killed process has lost no commit that it reported, and left none half done', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'store-'));
  const path = join(directory, 'taintward.db');
  let written = 0;
  const writer = new Child(process.execPath, [WRITER, path], {
    onLine: (line) => {
      written = Number(line);
      if (written === COMMITS) writer.signal('SIGKILL');
    },
  });
  try {
    await writer.exit;
    const store = new SqliteStore({ path });
    const ref = { cluster: clusterName('c'), node: nodeName('n') };
    const { revision, node, scheduled } = await store.load(ref, NOW);
    store.close();
    assert.ok(written >= COMMITS);
    assert.ok(revision >= written, `${written} commits were told of, ${revision} are there`);
    assert.equal(node?.version.sequence, revision);
    assert.equal(scheduled.size, 2 * revision);
  } finally {
    await writer.kill();
    rmSync(directory, { recursive: true });
  }
});
