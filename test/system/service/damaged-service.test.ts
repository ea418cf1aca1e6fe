import assert from 'node:assert/strict';
import { type ChildProcess, execFileSync } from 'node:child_process';
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  truncateSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, type TestContext, test } from 'node:test';
import { clusterName, nodeName } from '#shared/eviction/identity.ts';
import { openRulesDatabase } from '#shared/state/sqlite/sqlite-database.ts';
import { SqliteStore } from '#shared/state/sqlite/sqlite-store.ts';
import { RULES_FILE } from '#shared/state/sqlite/state-directory.ts';
import { systemClock } from '#shared/time/clock.ts';
import { type SimulatedCluster, startSimulatedCluster } from '#simulator/cluster.ts';
import type { Exit } from '#test/world/child.ts';
import { NpmStart } from '#test/world/npm-start.ts';

/** Some pods on each node tolerate this taint for half a minute. */
const TAINT = 'maintenance=now:NoExecute';

/** `npm start` on a cluster. */
class Service extends NpmStart {
  constructor(t: TestContext, { context, kubeconfig }: SimulatedCluster, state: string) {
    const args = ['--context', context, '--kubeconfig', kubeconfig, '--enforce'];
    super(t, [...args, '--no-console', '--port', '0', '--log', 'json'], state);
  }

  /** Waits until it ends with 1, and a sentence on standard error that names this path. */
  async endsNaming(path: string): Promise<void> {
    assert.equal((await this.exit).code, 1);
    const sentence = this.err.all.at(-1) ?? '';
    assert.ok(sentence.startsWith('taintward: ') && sentence.includes(path), sentence);
  }

  override async stop(): Promise<Exit> {
    const exit = await super.stop();
    assert.equal(exit.code, 0);
    return exit;
  }
}

function mayWriteAnywhere(): string | false {
  return process.getuid?.() === 0 && 'root may write into any directory';
}

/** Returns the deadlines of a node's pods in the store in a file. */
async function timersIn(path: string): Promise<readonly number[]> {
  const store = new SqliteStore({ path });
  const ref = { cluster: clusterName('simulated'), node: nodeName('node-1') };
  const { scheduled } = await store.load(ref, systemClock.now());
  store.close();
  return [...scheduled.values()].map(({ dueAt }) => dueAt);
}

describe('a running service', { timeout: 240_000 }, () => {
  let directory: string;
  let cluster: SimulatedCluster;
  let state: string;
  let path: string;
  beforeEach(async () => {
    directory = mkdtempSync(join(tmpdir(), 'damaged-service-'));
    cluster = await startSimulatedCluster({ clock: systemClock, dir: join(directory, 'cluster') });
  });
  afterEach(async () => {
    await cluster.close();
    rmSync(directory, { recursive: true });
  });

  /** Starts a service with a pod that is due in half a minute; returns both. */
  async function withATimer(t: TestContext, name: string) {
    state = join(directory, name);
    path = join(state, 'store.sqlite');
    const service = new Service(t, cluster, state);
    await service.event('relay.synced');
    cluster.taint('node-1', TAINT);
    const { dueAt } = await service.event('eviction.scheduled', ({ pod }) =>
      String(pod).startsWith('checkout'),
    );
    return { service, dueAt: dueAt as number };
  }

  async function goesOn(t: TestContext): Promise<void> {
    const again = new Service(t, cluster, state);
    await again.event('relay.synced');
    await again.stop();
  }

  test('restores a deleted state directory without losing timers, and ends with a message', async (t) => {
    const { service, dueAt } = await withATimer(t, 'deleted');
    rmSync(state, { recursive: true });
    await service.endsNaming(path);
    assert.ok((await timersIn(path)).includes(dueAt));
    assert.deepEqual([statSync(state).mode & 0o777, statSync(path).mode & 0o777], [0o700, 0o600]);
    await goesOn(t);
  });

  test('writes a deleted log into the database, and ends with a message', async (t) => {
    const { service, dueAt } = await withATimer(t, 'no-log');
    rmSync(`${path}-wal`);
    await service.endsNaming(path);
    assert.ok((await timersIn(path)).includes(dueAt));
  });

  test('ends when its rules are replaced, and stops all clusters at the next start', async (t) => {
    const { service } = await withATimer(t, 'other-rules');
    const rules = join(state, RULES_FILE);
    const other = join(directory, 'other-rules.sqlite');
    openRulesDatabase(other).close();
    renameSync(other, rules);
    await service.endsNaming(rules);
    const again = new Service(t, cluster, state);
    await again.event('rules.outdated');
    await again.event('relay.synced');
    await again.stop();
  });

  test('ends before a truncated log reaches the database', async (t) => {
    const { service } = await withATimer(t, 'cut-log');
    truncateSync(`${path}-wal`, 0);
    await service.endsNaming(path);
    await goesOn(t);
  });

  test('leaves a replacement of its database unchanged, and ends with a message', async (t) => {
    const { service } = await withATimer(t, 'replaced');
    const other = join(directory, 'other.sqlite');
    new SqliteStore({ path: other }).close();
    const before = readFileSync(other);
    renameSync(other, path);
    await service.endsNaming(path);
    assert.deepEqual(readFileSync(path), before);
  });

  test('reports a full disk, loses nothing, and proceeds when there is room', {
    skip: cannotLimit(),
  }, async (t) => {
    const { service, dueAt } = await withATimer(t, 'full');
    limit(service.process, statSync(`${path}-wal`).size);
    cluster.taint('node-2', TAINT);
    await service.line((line) => String(JSON.parse(line).error).includes(path) || undefined);
    limit(service.process, 'unlimited');
    await service.event('eviction.scheduled', ({ node }) => node === 'node-2');
    assert.ok((await timersIn(path)).includes(dueAt));
    await service.stop();
  });

  test('does not start with a read-only directory, and reports it', {
    skip: mayWriteAnywhere(),
  }, async (t) => {
    state = join(directory, 'read-only');
    mkdirSync(state);
    chmodSync(state, 0o500);
    await new Service(t, cluster, state).endsNaming(state);
  });
});

/** Limits the size of a process's files, in bytes. */
function limit({ pid }: ChildProcess, size: number | 'unlimited'): void {
  execFileSync('prlimit', ['--pid', String(pid), `--fsize=${size}:`]);
}

function cannotLimit(): string | false {
  try {
    execFileSync('prlimit', ['--version']);
    return false;
  } catch {
    return 'there is no prlimit, by which files of a process are kept from growing';
  }
}
