import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import { StartPolicies } from '#functions/service/start-policies.ts';
import { clusterName } from '#shared/eviction/identity.ts';
import { perform } from '#shared/operations/acts/perform.ts';
import { ObjectRulesStore } from '#shared/state/objects/object-rules-store.ts';
import type { FileRulesStore } from '#shared/state/rules-store.ts';
import { openRulesDatabase } from '#shared/state/sqlite/sqlite-database.ts';
import { SqliteRulesStore } from '#shared/state/sqlite/sqlite-rules-store.ts';
import { recordingLog } from '#test/contracts/recording-log.ts';
import { DrivenClock } from '#test/world/driven-clock.ts';
import { FakeObjects } from '#test/world/fake-objects.ts';

const prod = clusterName('prod');
const NOW = Date.UTC(2026, 10, 24);
const HOUR_MS = 3_600_000;

/** Files of one policy, and processes that are given one file each. */
function aService(t: TestContext, rulesStore: FileRulesStore) {
  const dir = mkdtempSync(join(tmpdir(), 'policy-file-'));
  t.after(() => rmSync(dir, { recursive: true }));
  const clock = new DrivenClock(NOW);
  const log = recordingLog();
  const operator = { rulesStore, clock, actor: 'taintward@pod' };
  return {
    rulesStore,
    clock,
    anna: { rulesStore, clock, actor: 'anna@laptop' },
    /** Writes the file of one pod with this modification time. */
    write(name: string, text: string, writtenAt = clock.now()): string {
      const file = join(dir, name);
      writeFileSync(file, text);
      utimesSync(file, writtenAt / 1000, writtenAt / 1000);
      return file;
    },
    process: (file: string) =>
      new StartPolicies({ enforce: false, file }, [prod], { operator, rulesStore, clock, log }),
    mode: async () => (await rulesStore.read(prod)).orders.policy?.read.mode,
    logged: () =>
      log.lines.map(({ event, fields }) => [event, fields['mode'], fields['file']].join(' ').trim()),
  };
}

const ALONE = 'apply';
const ONE_OF_SEVERAL = 'resume';

for (const [host, start, rulesStore] of [
  ['in one process', ALONE, () => new SqliteRulesStore({ database: openRulesDatabase(':memory:') })],
  ['in a cluster', ONE_OF_SEVERAL, () => new ObjectRulesStore({ objects: new FakeObjects() })],
] as const) {
  describe(`a policy file ${host}`, () => {
    test('keeps a policy that an operator applied or withdrew', async (t) => {
      const { write, process, anna, mode, rulesStore: book } = aService(t, rulesStore());
      const file = write('policy.yaml', 'mode: enforce\n');
      await process(file)[start]();
      await perform(
        { kind: 'apply-policy', cluster: prod, text: 'mode: observe\n', reason: 'stop this' },
        anna,
      );
      await process(file)[start]();
      assert.equal(await mode(), 'observe');
      await perform({ kind: 'withdraw-policy', cluster: prod }, anna);
      await process(file)[start]();
      assert.equal((await book.read(prod)).orders.policy, undefined);
    });

    test('is applied if it was edited while no process ran, and ends no stop', async (t) => {
      const { write, process, anna, mode, logged, clock } = aService(t, rulesStore());
      await process(write('policy.yaml', 'mode: enforce\n'))[start]();
      await perform({ kind: 'stop', cluster: prod, reason: 'incident' }, anna);
      await clock.advanceTo(clock.now() + HOUR_MS);
      await process(write('policy.yaml', 'mode: observe\n'))[start]();
      assert.equal(await mode(), 'observe');
      assert.deepEqual(logged(), ['policy.applied enforce', 'policy.applied observe']);
    });

    test('is applied once when edited and once when edited back', async (t) => {
      const { write, process, mode, clock } = aService(t, rulesStore());
      for (const wanted of ['enforce', 'observe', 'enforce']) {
        await process(write('policy.yaml', `mode: ${wanted}\n`))[start]();
        assert.equal(await mode(), wanted);
        await clock.advanceTo(clock.now() + HOUR_MS);
      }
    });

    test('is applied once over a policy for which an older release recorded no file', async (t) => {
      const { write, process, anna, mode } = aService(t, rulesStore());
      await perform({ kind: 'apply-policy', cluster: prod, text: 'mode: observe\n' }, anna);
      await process(write('policy.yaml', 'mode: enforce\n'))[start]();
      assert.equal(await mode(), 'enforce');
    });

    test('is recorded together with the rules that it changes, or not at all', async (t) => {
      const { write, process, anna, mode, rulesStore: book } = aService(t, rulesStore());
      const noteFile = t.mock.method(book, 'noteFile');
      noteFile.mock.mockImplementationOnce(async (...given: Parameters<FileRulesStore['noteFile']>) => {
        // Another operator writes first.
        await perform({ kind: 'apply-policy', cluster: prod, text: 'mode: observe\n' }, anna);
        noteFile.mock.restore();
        return book.noteFile(...given);
      });
      await process(write('policy.yaml', 'mode: enforce\n'))[start]();
      assert.equal(await mode(), 'enforce');
      const entries = await book.audit({ cluster: prod, from: 0, to: NOW + 1 });
      assert.deepEqual(
        entries.map(({ actor, policy: change }) => [actor, change?.settings[0]?.now]),
        [
          ['taintward@pod', 'observe'],
          ['anna@laptop', undefined],
        ],
      );
    });

    test('survives rule changes by operators', async (t) => {
      const { write, process, anna, rulesStore: book } = aService(t, rulesStore());
      await process(write('policy.yaml', 'mode: enforce\n'))[start]();
      const noted = await book.appliedFile(prod);
      await perform({ kind: 'stop', cluster: prod, reason: 'incident' }, anna);
      const { guard } = await book.read(prod);
      await book.changeGuard(prod, guard, [{ scope: 'cluster', trippedAt: NOW, nodes: 6, outOf: 10 }]);
      await perform({ kind: 'stop', reason: 'incident' }, anna);
      assert.ok(noted);
      assert.deepEqual(await book.appliedFile(prod), noted);
    });
  });
}

describe('two replicas with different policy files during an update', () => {
  const upgrade = (t: TestContext) => {
    const service = aService(t, new ObjectRulesStore({ objects: new FakeObjects() }));
    return {
      ...service,
      older: service.write('of-the-old-pod.yaml', 'mode: enforce\n', NOW - HOUR_MS),
      newer: service.write('of-the-new-pod.yaml', 'mode: observe\n', NOW - 1_000),
    };
  };

  test('apply the newer file once, whichever acquires the lease', async (t) => {
    const { process, older, newer, mode, logged } = upgrade(t);
    await process(older).resume();
    await process(newer).resume();
    for (const file of [older, newer, older]) {
      const next = process(file);
      await next.resume();
      await next.reread();
      assert.equal(await mode(), 'observe');
    }
    assert.deepEqual(logged(), [
      'policy.applied enforce',
      'policy.applied observe',
      ...['policy.kept observe older', 'policy.kept observe older'],
    ]);
  });

  test('apply the newer file once even if the old pod also receives it', async (t) => {
    const { process, older, newer, mode, logged, write } = upgrade(t);
    const old = process(older);
    await old.resume();
    await process(newer).resume();
    write('of-the-old-pod.yaml', 'mode: observe\n');
    await old.reread();
    assert.equal(await mode(), 'observe');
    await process(newer).resume();
    assert.deepEqual(logged(), ['policy.applied enforce', 'policy.applied observe']);
  });

  test('apply a file that was restored, because it is the newest again', async (t) => {
    const { process, older, newer, mode, write, clock } = upgrade(t);
    await process(older).resume();
    await process(newer).resume();
    await clock.advanceTo(clock.now() + HOUR_MS);
    const rolledBack = write('of-a-third-pod.yaml', 'mode: enforce\n');
    await process(rolledBack).resume();
    await process(newer).resume();
    assert.equal(await mode(), 'enforce');
  });

  test('apply a file that changes under the leader on a node with a slow clock', async (t) => {
    const { process, newer, mode, write } = upgrade(t);
    const leader = process(newer);
    await leader.resume();
    write('of-the-new-pod.yaml', 'mode: enforce\n', NOW - HOUR_MS);
    await leader.reread();
    assert.equal(await mode(), 'enforce');
    await process(write('of-another.yaml', 'mode: observe\n', NOW - 1_000)).resume();
    assert.equal(await mode(), 'enforce');
  });

  test('ignore an older file that was unreadable at first', async (t) => {
    const { process, older, newer, mode, write } = upgrade(t);
    await process(older).resume();
    await process(newer).resume();
    const old = process(write('of-the-old-pod.yaml', 'mode: off\n', NOW - HOUR_MS));
    await old.resume();
    write('of-the-old-pod.yaml', 'mode: enforce\n', NOW - HOUR_MS);
    await old.reread();
    assert.equal(await mode(), 'observe');
  });

  test('apply a later file despite one with a future modification time', async (t) => {
    const { process, mode, write, clock } = upgrade(t);
    await process(write('of-a-pod.yaml', 'mode: enforce\n', NOW + 24 * HOUR_MS)).resume();
    await clock.advanceTo(clock.now() + HOUR_MS);
    await process(write('of-the-next.yaml', 'mode: observe\n')).resume();
    assert.equal(await mode(), 'observe');
  });
});
