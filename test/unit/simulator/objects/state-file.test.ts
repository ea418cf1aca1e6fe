import assert from 'node:assert/strict';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterEach, beforeEach, describe, test } from 'node:test';
import { openStateFile } from '#simulator/objects/state-file.ts';
import { recordingLog } from '#test/contracts/recording-log.ts';
import { aNode, aPod, aStore, inDefault, unscoped } from '../builders.ts';

let directory: string;
let path: string;

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'simulated-cluster-'));
  path = join(directory, 'state.db');
});
afterEach(() => rmSync(directory, { recursive: true }));

/** Stores a cluster with a node and a pod in the file. */
function keepSome(): void {
  const { save, close } = openStateFile(path);
  const store = aStore({ save });
  store.create('nodes', '', aNode('node-1', { taints: [{ key: 'a', effect: 'NoExecute' }] }));
  for (let n = 0; n < 50; n += 1) store.create('pods', 'default', aPod(`web-${n}`));
  close();
}

describe('the state file', () => {
  test('holds nothing at first', () => {
    const { state, close } = openStateFile(path);
    assert.equal(state, undefined);
    close();
  });

  test('restores objects, versions, and exact 64-bit integers', () => {
    const first = openStateFile(path);
    const store = aStore({ save: first.save });
    const toleration = { operator: 'Exists', effect: 'NoExecute', tolerationSeconds: 9223372036854775807n };
    store.create('nodes', '', aNode('node-1'));
    store.create('nodes', '', aNode('node-2'));
    store.create('pods', 'default', aPod('web', { tolerations: [toleration] }));
    store.bind(inDefault('web'), 'node-1');
    store.delete('nodes', unscoped('node-2'));
    first.close();
    const { state, save, close } = openStateFile(path);
    assert.ok(state);
    const again = aStore({ state, save });
    assert.equal(again.version, store.version);
    assert.deepEqual(again.all('nodes'), store.all('nodes'));
    assert.deepEqual(again.all('pods'), store.all('pods'));
    assert.equal(
      again.create('nodes', '', aNode('node-3')).metadata.resourceVersion,
      String(store.version + 1),
    );
    close();
  });

  test('is recreated if it was truncated anywhere, and never yields part of a cluster', () => {
    keepSome();
    const whole = readFileSync(path);
    for (let size = 1; size < whole.length; size += 511) {
      rmSync(directory, { recursive: true });
      directory = mkdtempSync(join(tmpdir(), 'simulated-cluster-'));
      path = join(directory, 'state.db');
      writeFileSync(path, whole.subarray(0, size));
      const { state, save, close } = openStateFile(path);
      const store = aStore({ save, ...(state === undefined ? {} : { state }) });
      store.create('nodes', '', aNode('new'));
      close();
      assert.equal(state, undefined, `${size} of ${whole.length} bytes`);
    }
  });

  test('is moved aside with a warning if its content is invalid', () => {
    for (const damage of [
      "UPDATE objects SET json = '{' WHERE resource = 'nodes'",
      "UPDATE objects SET json = '{}' WHERE resource = 'nodes'",
      "UPDATE objects SET resource = 'secrets' WHERE resource = 'nodes'",
      'DROP TABLE objects',
      'PRAGMA user_version = 99',
    ]) {
      keepSome();
      const database = new DatabaseSync(path);
      database.exec(damage);
      database.close();
      const log = recordingLog();
      const { state, close } = openStateFile(path, log);
      close();
      assert.equal(state, undefined, damage);
      const warned = log.lines.map(({ level, event }) => `${level} ${event}`);
      assert.deepEqual(warned, ['warn simulated-cluster.state-damaged']);
      assert.ok(existsSync(`${path}.damaged`));
      rmSync(path);
    }
  });

  test("fails if it can't be opened", () => {
    assert.throws(() => openStateFile(join(directory, 'nowhere', 'state.db')), /unable to open/);
  });
});
