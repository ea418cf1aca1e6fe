import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import { PROJECT_DIR } from '#deploy/build/bundle.ts';
import { isInUse } from '#shared/state/sqlite/state-directory.ts';
import { freePort } from '#test/aws/server-process.ts';
import { until } from '#test/cluster/rig/until.ts';
import { Child } from '#test/world/child.ts';
import { NpmStart, npmStart } from '#test/world/npm-start.ts';
import { startInstallation } from './entries/entries.ts';

/** npm forwards the first two. Of the others, its child must notice by itself that npm has ended. */
const SIGNALS = ['SIGTERM', 'SIGINT', 'SIGHUP', 'SIGKILL'] as const;
type Env = Readonly<Record<string, string>>;

/** A script under npm, in a process group of its own, which is killed at the end of the test. */
class Script extends Child {
  constructor(t: TestContext, name: string, args: readonly string[], env: Env) {
    super('npm', ['run', name, '--', ...args], {
      cwd: PROJECT_DIR,
      group: true,
      env: { PATH: process.env['PATH'], HOME: tmpdir(), ...env },
    });
    t.after(() => this.signal('SIGKILL'));
  }

  /** Resolves when the output has this text. */
  printed(text: string): Promise<unknown> {
    return until(`output of ${text}`, () => {
      const output = this.out.text + this.err.text;
      assert.equal(this.process.exitCode, null, output);
      return output.includes(text);
    });
  }

  /** Signals npm alone, and resolves when no process of the group is left. */
  async endsBy(signal: NodeJS.Signals): Promise<void> {
    const ended = once(this.process, 'exit');
    this.process.kill(signal);
    await ended;
    await until(`the end of all processes after ${signal}`, () => !this.signal(0));
  }
}

interface Started {
  readonly args?: readonly string[];
  readonly env?: Env;
  /** Output of a script that is at work. */
  readonly ready: string;
  /** Asserts that nothing is left behind. */
  readonly check?: () => void;
}

function folder(t: TestContext): string {
  const dir = mkdtempSync(join(tmpdir(), 'signals-'));
  t.after(() => rmSync(dir, { recursive: true }));
  return dir;
}

/** Writes programs that never end. */
function endless(dir: string, ...names: readonly string[]): string {
  for (const name of names)
    writeFileSync(
      join(dir, name),
      '#!/bin/sh\ncase "$*" in *ersion*) echo "Python 3.13.0"; exit;; esac\necho endless >&2\nexec sleep 600\n',
      { mode: 0o755 },
    );
  return dir;
}

/** How each script that starts a program is started. */
const SCRIPTS: Readonly<Record<string, (t: TestContext) => Started | Promise<Started>>> = {
  start: (t) => {
    const state = join(folder(t), 'state');
    return {
      args: ['--state-dir', state, '--no-console', '--log', 'json'],
      ready: 'relay.synced',
      check: () => assert.deepEqual([existsSync(state), isInUse(state)], [true, false]),
    };
  },
  relay: async (t) => ({ env: (await startInstallation(t)).environment, ready: 'relay.started' }),
  agent: async (t) => {
    const { cluster, environment } = await startInstallation(t);
    return {
      args: ['--context', cluster.context, '--kubeconfig', cluster.kubeconfig],
      env: { ...environment, AGENT: 'edge-1', CLUSTER: 'edge' },
      ready: 'relay.started',
    };
  },
  localstack: async (t) => {
    const dir = endless(folder(t), 'python3.13');
    writeFileSync(join(dir, 'java'), `#!/bin/sh\necho 'openjdk version "17.0.15" 2025-04-15'\n`, {
      mode: 0o755,
    });
    writeFileSync(join(dir, 'mvn'), "#!/bin/sh\necho 'Apache Maven 3.9.9'\n", { mode: 0o755 });
    return {
      args: ['--port', String(await freePort())],
      env: { PATH: `${dir}:${process.env['PATH']}`, XDG_CACHE_HOME: join(dir, 'cache') },
      ready: 'localstack: ',
    };
  },
  chaos: (t) => ({ args: ['--testbed', join(endless(folder(t), 'testbed'), 'testbed')], ready: 'seed' }),
  bench: () => ({ args: ['relay-soak', '--minutes', '60'], ready: 'relay-soak: ' }),
};

test('each script that starts a program is tried here', () => {
  const { scripts }: { readonly scripts: Env } = JSON.parse(
    readFileSync(join(PROJECT_DIR, 'package.json'), 'utf8'),
  );
  const programs = Object.entries(scripts).filter(([, command]) => command.startsWith('exec '));
  assert.deepEqual(programs.map(([name]) => name).toSorted(), Object.keys(SCRIPTS).toSorted());
  const others = Object.values(scripts).filter((command) => /node .*functions\//.test(command));
  assert.deepEqual(
    others.filter((command) => !command.startsWith('exec ')),
    [],
  );
});

describe('under npm, a signal to npm ends all processes of', () => {
  for (const [name, start] of Object.entries(SCRIPTS))
    test(`npm run ${name}`, async (t) => {
      await Promise.all(
        SIGNALS.map(async (signal) => {
          const { args = [], env = {}, ready, check } = await start(t);
          const script = new Script(t, name, args, env);
          await script.printed(ready);
          await script.endsBy(signal);
          check?.();
        }),
      );
    });
});

test('Ctrl-C under npm, which signals the program twice, stops it as one signal does', async (t) => {
  const service = new NpmStart(t, ['--log', 'json', '--no-console']);
  await service.event('relay.synced');
  service.signal('SIGINT');
  await service.event('relay.stopping');
  service.signal('SIGINT');
  assert.equal((await service.exit).code, 0);
});

test('a signal to the command line ends a command that watches', async (t) => {
  const service = await npmStart(t, '--no-console');
  const launcher = join(PROJECT_DIR, 'functions/cli/taintward.js');
  for (const signal of ['SIGTERM', 'SIGHUP'] as const) {
    const args = [launcher, '--state-dir', service.state, 'pending', '--watch'];
    const command = spawn(process.execPath, args, { detached: true });
    await once(command.stdout, 'data');
    const closed = once(command, 'close');
    command.kill(signal);
    // Its streams close once its child has ended, too.
    assert.deepEqual(await closed, [0, null]);
  }
});
