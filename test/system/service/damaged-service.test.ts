import assert from 'node:assert/strict';
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
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
import { createInterface } from 'node:readline';
import { text } from 'node:stream/consumers';
import { afterEach, beforeEach, describe, type TestContext, test } from 'node:test';
import { PROJECT_DIR } from '#deploy/build/bundle.ts';
import { clusterName, nodeName } from '#shared/eviction/identity.ts';
import { SqliteStore } from '#shared/state/sqlite/sqlite-store.ts';
import { systemClock } from '#shared/time/clock.ts';
import { type SimulatedCluster, startSimulatedCluster } from '#simulator/cluster.ts';

const MAIN = join(PROJECT_DIR, 'functions/service/main.ts');
/** Some pods on each node tolerate this taint for half a minute. */
const TAINT = 'maintenance=now:NoExecute';

interface Line {
  readonly event: string;
  readonly fields: Readonly<Record<string, unknown>>;
}

/** `npm start` on a cluster, in a process of its own. */
class Service {
  readonly process: ChildProcess;
  readonly said: Promise<string>;
  readonly #lines: Line[] = [];
  #heard = Promise.withResolvers<void>();
  #hasEnded = false;

  constructor(t: TestContext, cluster: SimulatedCluster, state: string) {
    const { context, kubeconfig } = cluster;
    const args = ['--context', context, '--kubeconfig', kubeconfig, '--state-dir', state];
    this.process = spawn(
      process.execPath,
      [MAIN, ...args, '--enforce', '--no-console', '--port', '0', '--log', 'json'],
      { stdio: ['ignore', 'pipe', 'pipe'] },
    );
    t.after(() => this.process.kill('SIGKILL'));
    const { stdout, stderr } = this.process;
    assert.ok(stdout && stderr);
    this.said = text(stderr);
    createInterface({ input: stdout })
      .on('line', (line) => {
        const { event, ...fields } = JSON.parse(line);
        this.#lines.push({ event, fields });
        this.#heard.resolve();
        this.#heard = Promise.withResolvers();
      })
      .on('close', () => {
        this.#hasEnded = true;
        this.#heard.resolve();
      });
  }

  /** Resolves with the first matching line of its log, past or future. */
  async line(isIt: (line: Line) => boolean): Promise<Line> {
    for (;;) {
      const found = this.#lines.find(isIt);
      if (found) return found;
      if (this.#hasEnded) assert.fail(`the service ended: ${(await this.said).slice(-1_000)}`);
      await this.#heard.promise;
    }
  }

  event(name: string): Promise<Line> {
    return this.line(({ event }) => event === name);
  }

  /** Resolves with its exit code, and the last line of its standard error. */
  async ended(): Promise<readonly [number | null, string]> {
    const [code] =
      this.process.exitCode === null ? await once(this.process, 'exit') : [this.process.exitCode];
    return [code, (await this.said).trimEnd().split('\n').at(-1) ?? ''];
  }

  async stop(): Promise<void> {
    this.process.kill('SIGTERM');
    assert.equal((await this.ended())[0], 0);
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
  return [...scheduled.values()].map(({ fireAt }) => fireAt);
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
    const { fields } = await service.line(
      (line) => line.event === 'eviction.scheduled' && String(line.fields['pod']).startsWith('checkout'),
    );
    return { service, fireAt: fields['dueAt'] as number };
  }

  async function goesOn(t: TestContext): Promise<void> {
    const again = new Service(t, cluster, state);
    await again.event('relay.synced');
    await again.stop();
  }

  test('restores a deleted state directory without losing timers, and ends with a message', async (t) => {
    const { service, fireAt } = await withATimer(t, 'deleted');
    rmSync(state, { recursive: true });
    const sentence = `taintward: the database ${path} was deleted while it was in use; its content is restored: start it again`;
    assert.deepEqual(await service.ended(), [1, sentence]);
    assert.ok((await timersIn(path)).includes(fireAt));
    assert.deepEqual([statSync(state).mode & 0o777, statSync(path).mode & 0o777], [0o700, 0o600]);
    await goesOn(t);
  });

  test('writes a deleted log into the database, and ends with a message', async (t) => {
    const { service, fireAt } = await withATimer(t, 'no-log');
    rmSync(`${path}-wal`);
    const sentence = `taintward: the log of the database ${path} was deleted while it was in use; its content was written to the database: start it again`;
    assert.deepEqual(await service.ended(), [1, sentence]);
    assert.ok((await timersIn(path)).includes(fireAt));
  });

  test('ends before a truncated log reaches the database', async (t) => {
    const { service } = await withATimer(t, 'cut-log');
    truncateSync(`${path}-wal`, 0);
    const [code, said] = await service.ended();
    assert.equal(code, 1);
    assert.match(
      said,
      /^taintward: the log of the database .* was cut off while it was in use; changes that were only in the log are lost, .*: start it again$/,
    );
    await goesOn(t);
  });

  test('saves its own database beside a replacement, and ends with a message', async (t) => {
    const { service, fireAt } = await withATimer(t, 'replaced');
    const other = join(directory, 'other.sqlite');
    new SqliteStore({ path: other }).close();
    const before = readFileSync(other);
    renameSync(other, path);
    const sentence = `taintward: the database ${path} was replaced while it was in use; what this process had in it is in ${path}.saved: start it again`;
    assert.deepEqual(await service.ended(), [1, sentence]);
    assert.deepEqual(readFileSync(path), before);
    assert.ok((await timersIn(`${path}.saved`)).includes(fireAt));
  });

  test('reports a full disk, loses nothing, and proceeds when there is room', {
    skip: cannotLimit(),
  }, async (t) => {
    const { service, fireAt } = await withATimer(t, 'full');
    limit(service.process, statSync(`${path}-wal`).size);
    cluster.taint('node-2', TAINT);
    const full = await service.line(({ fields }) => String(fields['error']).includes(path));
    assert.match(
      String(full.fields['error']),
      /The database .* cannot be used: its disk (?:is full: make room|fails: check the disk and the free space) \(.*\)\./,
    );
    limit(service.process, 'unlimited');
    await service.line(({ event, fields }) => event === 'eviction.scheduled' && fields['node'] === 'node-2');
    assert.ok((await timersIn(path)).includes(fireAt));
    await service.stop();
  });

  test('does not start with a read-only directory, and reports it', {
    skip: mayWriteAnywhere(),
  }, async (t) => {
    state = join(directory, 'read-only');
    mkdirSync(state);
    chmodSync(state, 0o500);
    const [code, said] = await new Service(t, cluster, state).ended();
    assert.equal(code, 1);
    assert.equal(
      said,
      `taintward: cannot use the state directory ${state} (EACCES): make it readable and writable, or choose another with --state-dir DIR`,
    );
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
