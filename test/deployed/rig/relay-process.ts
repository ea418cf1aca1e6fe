import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { z } from 'zod';
import { PROBE_PORT } from '#shared/aws/environment.ts';
import { freePort } from '#test/aws/server-process.ts';
import { until } from '#test/cluster/rig/until.ts';
import { AwsTap } from './aws-tap.ts';
import { ROOT } from './command.ts';
import { accountEnvironment } from './emulated-account.ts';

/** The entry point of `npm run relay`. */
const MAIN = join(ROOT, 'functions/relay/main.ts');
const ANSWERS_WITHIN_MS = 2_000;

const Line = z.looseObject({ level: z.string(), time: z.string(), event: z.string() });
/** A line of the relay's log. */
export type RelayLine = z.infer<typeof Line> & { readonly at: number };

/** The program, environment, and user of a relay. */
export interface Launch {
  readonly program: string;
  readonly args: readonly string[];
  readonly cwd: string;
  readonly env: NodeJS.ProcessEnv;
  /** The user; absent: the user who runs the tests. */
  readonly uid?: number;
  /** The command of the health check. */
  readonly health?: { readonly program: string; readonly args: readonly string[] };
}

/** Returns the launch of a relay by the command that the stack prints: `A=1 B=2 npm run relay`. */
export function printedLaunch(command: string): Launch {
  assert.match(command, /^([A-Z_]+=\S+ )+npm run relay$/);
  return { program: process.execPath, args: [MAIN], cwd: ROOT, env: assigned(command) };
}

/** Returns the variables in a text that the stack prints: `A=1 B=2`, with any other words. */
export function assigned(text: string): Readonly<Record<string, string>> {
  const assignments = text.split(' ').filter((word) => word.includes('='));
  return Object.fromEntries(assignments.map((each) => each.split(/=(.*)/, 2)));
}

/** A relay, behind a tap of its own. */
export class RelayProcess {
  readonly tap: AwsTap;
  readonly lines: RelayLine[] = [];
  readonly #child: ChildProcess;
  readonly #port: number;
  readonly #launch: Launch;
  readonly #exit: Promise<unknown>;
  #ended = false;
  #stderr = '';

  private constructor(
    child: ChildProcess,
    tap: AwsTap,
    { port, launch }: { readonly port: number; readonly launch: Launch },
  ) {
    this.#child = child;
    this.tap = tap;
    this.#port = port;
    this.#launch = launch;
    child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      this.#stderr += text;
    });
    if (child.stdout) createInterface({ input: child.stdout }).on('line', (text) => this.#read(text));
    const kill = () => child.kill('SIGKILL');
    process.once('exit', kill);
    this.#exit = once(child, 'close').then(() => {
      process.off('exit', kill);
      this.#ended = true;
    });
  }

  /** Starts a relay and waits until it answers. */
  static async start(endpoint: string, launch: Launch): Promise<RelayProcess> {
    const [tap, port] = await Promise.all([AwsTap.open(endpoint), freePort()]);
    const env = {
      ...accountEnvironment(tap.url),
      ...launch.env,
      PROBE_HOST: '127.0.0.1',
      PROBE_PORT: String(port),
    };
    const { program, args, cwd, uid } = launch;
    const identity = uid === undefined ? {} : { uid, gid: uid };
    const child = spawn(program, args, { cwd, env, stdio: ['ignore', 'pipe', 'pipe'], ...identity });
    const relay = new RelayProcess(child, tap, { port, launch });
    await until('the relay is up', async () => {
      if (relay.#ended) throw new Error(`The relay ended early: ${relay.#stderr}`);
      return (await relay.#get('/healthz')) !== undefined;
    });
    return relay;
  }

  /** Returns the names of all states and conditions of a cluster from `/readyz`. */
  async conditions(cluster: string): Promise<readonly string[]> {
    const text = (await this.#get('/readyz?verbose')) ?? '';
    return [...text.matchAll(/^\[[+-]\](\S+)\/(\S+) /gm)].flatMap(([, name, what = '']) =>
      name === cluster ? what : [],
    );
  }

  /** Returns the state of each cluster from `/readyz`: `standby`, `syncing`, `live`, or its last condition. */
  async states(): Promise<ReadonlyMap<string, string>> {
    const text = (await this.#get('/readyz?verbose')) ?? '';
    const lines = [...text.matchAll(/^\[[+-]\](\S+)\/(\S+) /gm)];
    // Conditions of a cluster follow its state, so the first line must win.
    return new Map(lines.toReversed().map(([, cluster = '', state = '']) => [cluster, state]));
  }

  /** Returns the first line of an event since a time, about a cluster. */
  logged(event: string, cluster: string, since = 0): RelayLine | undefined {
    return this.lines.find((line) => line.event === event && line['cluster'] === cluster && line.at >= since);
  }

  /** The folder in which it is started. */
  get folder(): string {
    return this.#launch.cwd;
  }

  /** Reports whether ECS's health check succeeds, with only the port replaced. */
  async isHealthy(): Promise<boolean> {
    const { health } = this.#launch;
    assert.ok(health, 'nobody asks it for its health');
    const args = health.args.map((word) =>
      word.replace(`127.0.0.1/${PROBE_PORT} `, `127.0.0.1/${this.#port} `),
    );
    return (await this.#beside(health.program, args)) === 0;
  }

  /** Reports whether a process with the relay's user and permissions can create a file. */
  async canWrite(): Promise<boolean> {
    const write = "require('node:fs').writeFileSync('mark', '')";
    return (await this.#beside(this.#launch.program, ['-e', write])) === 0;
  }

  get ended(): boolean {
    return this.#ended;
  }

  /** Suspends the process: SIGSTOP. */
  pause(): void {
    this.#child.kill('SIGSTOP');
  }

  /** Resumes the process: SIGCONT. */
  resume(): void {
    this.#child.kill('SIGCONT');
  }

  /** `kill -9`. */
  async kill(): Promise<void> {
    this.#child.kill('SIGKILL');
    await this.#exit;
    await this.tap.close();
  }

  /** Stops the relay as a supervisor does. */
  async stop(): Promise<void> {
    this.#child.kill('SIGTERM');
    await until('the relay ends after SIGTERM', () => this.#ended);
    await this.tap.close();
  }

  /** Runs a program with the relay's folder, environment, and user, and returns its exit code. */
  async #beside(program: string, args: readonly string[]): Promise<unknown> {
    const { cwd, env, uid } = this.#launch;
    const identity = uid === undefined ? {} : { uid, gid: uid };
    const [code] = await once(spawn(program, args, { cwd, env, stdio: 'ignore', ...identity }), 'close');
    return code;
  }

  #read(text: string): void {
    const found = Line.safeParse(parseJson(text));
    if (found.success) this.lines.push({ ...found.data, at: Date.now() });
  }

  async #get(path: string): Promise<string | undefined> {
    const url = `http://127.0.0.1:${this.#port}${path}`;
    // A suspended relay accepts the connection and never answers.
    const answer = await fetch(url, { signal: AbortSignal.timeout(ANSWERS_WITHIN_MS) }).catch(
      () => undefined,
    );
    return answer?.text();
  }
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
