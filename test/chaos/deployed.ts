import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { CreateSecretCommand, SecretsManagerClient } from '@aws-sdk/client-secrets-manager';
import { awsClientConfig } from '#test/aws/endpoint.ts';
import { kubeconfigText } from '#test/cluster/rig/kubeconfig.ts';
import { until } from '#test/cluster/rig/until.ts';
import { ROOT, run } from '#test/deployed/rig/command.ts';
import { Deployment } from '#test/deployed/rig/deployment.ts';
import { accountEnvironment, openEmulatedAccount } from '#test/deployed/rig/emulated-account.ts';
import { taskLaunch } from '#test/deployed/rig/image/task.ts';
import { RawAws } from '#test/deployed/rig/raw-aws.ts';
import { type Launch, RelayProcess } from '#test/deployed/rig/relay-process.ts';
import type { Way } from './chaos.ts';
import type { Form, Victim } from './victim.ts';

const CLUSTER = 'chaos';
const CLI = join(ROOT, 'functions/cli/taintward.js');
const CLI_WITHIN_MS = 60_000;
const ENFORCE = join(ROOT, 'test/deployed/rig/enforce.yaml');
const RELAYS = 2;

/**
 * Deploys the stack on an emulated account, with relays as its tasks. The emulator is suspended, not killed: its whole
 * state is in its memory.
 */
export async function deployed({ account, gate }: Way): Promise<Form> {
  const opened = new AsyncDisposableStack();
  try {
    const aws = opened.adopt(await openEmulatedAccount(), (each) => each.close());
    const deployment = opened.adopt(new Deployment(aws), (each) => each.close());
    await deployment.bootstrap();
    await deployment.deploy();
    const entry = { context: CLUSTER, connection: gate.connection, token: account.token };
    const { ARN: secret = '' } = await new SecretsManagerClient(awsClientConfig(aws.url)).send(
      new CreateSecretCommand({ Name: `taintward/${CLUSTER}`, SecretString: await kubeconfigText([entry]) }),
    );
    const env = { ...accountEnvironment(aws.url), TAINTWARD_TABLE: deployment.output('TableName') };
    const cli = (...args: readonly string[]) =>
      run(process.execPath, [CLI, ...args], { env, withinMs: CLI_WITHIN_MS });
    await cli('clusters', 'add', CLUSTER, '--kubeconfig-secret', secret, '--context', CLUSTER);
    await cli('policy', 'apply', '--file', ENFORCE, CLUSTER, '--yes');
    const definition = await new RawAws(aws.url).taskDefinition('taintward-relay');
    const launch = taskLaunch(definition, (name) => deployment.image(name));
    const places = Array.from(
      { length: RELAYS },
      (_, index) => new RelayPlace(`relay ${index}`, aws.url, launch),
    );
    opened.defer(async () => void (await Promise.all(places.map((place) => place.close()))));
    await Promise.all(places.map((place) => place.start()));
    return {
      victims: [...places.map((place) => place.victim), ...(aws.pid === undefined ? [] : emulator(aws.pid))],
      get crashes() {
        return places.flatMap((place) => place.crashes);
      },
      ready: () =>
        until('a relay watches the cluster', async () => {
          const states = await Promise.all(places.map((place) => place.state()));
          return states.includes('live');
        }).then(() => undefined),
      close: () => opened.disposeAsync(),
    };
  } catch (error) {
    await opened.disposeAsync();
    throw error;
  }
}

/** A place for successive relays. */
class RelayPlace {
  readonly victim: Victim;
  readonly crashes: string[] = [];
  readonly #name: string;
  readonly #endpoint: string;
  readonly #launch: Launch;
  #relay: RelayProcess | undefined;
  #starting: Promise<void> = Promise.resolve();

  constructor(name: string, endpoint: string, launch: Launch) {
    this.#name = name;
    this.#endpoint = endpoint;
    this.#launch = launch;
    this.victim = {
      name,
      kill: async () => {
        // A busy machine may need more time to start it than remains before the next kill.
        await this.#starting;
        this.#noteCrash();
        await this.#relay?.kill();
      },
      start: () => this.start(),
      pause: () => this.#relay?.pause(),
      resume: () => this.#relay?.resume(),
    };
  }

  start(): Promise<void> {
    this.#starting = RelayProcess.start(this.#endpoint, this.#launch).then((relay) => {
      this.#relay = relay;
    });
    return this.#starting;
  }

  async state(): Promise<string | undefined> {
    this.#noteCrash();
    if (this.#relay?.ended) await this.start();
    return (await this.#relay?.states())?.get(CLUSTER);
  }

  async close(): Promise<void> {
    await this.#relay?.kill();
  }

  #noteCrash(): void {
    if (this.#relay?.ended)
      this.crashes.push(`${this.#name}: ${JSON.stringify(this.#relay.lines.slice(-3))}`);
  }
}

/** Returns a MiniStack, and the processes of its functions, which it restarts when they are missing. */
function emulator(pid: number): readonly Victim[] {
  return [
    {
      name: 'AWS emulator',
      pause: () => void process.kill(pid, 'SIGSTOP'),
      resume: () => void process.kill(pid, 'SIGCONT'),
    },
    {
      name: 'functions',
      kill: async () => {
        for (const child of childrenOf(pid)) {
          unlessGone(() => process.kill(child, 'SIGKILL'));
        }
      },
      start: async () => undefined,
    },
  ];
}

/** Returns the running children of a process from /proc, which lists each child under the thread that started it. */
const childrenOf = (pid: number): readonly number[] =>
  readdirSync(`/proc/${pid}/task`)
    .flatMap(
      (task) =>
        unlessGone(() => readFileSync(`/proc/${pid}/task/${task}/children`, 'utf8'))?.split(' ') ?? [],
    )
    .filter((word) => word.trim() !== '')
    .map(Number);

/** Threads and processes may end between the listing and the read. */
function unlessGone<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch (error) {
    if (['ENOENT', 'ESRCH'].includes((error as NodeJS.ErrnoException).code ?? '')) return undefined;
    throw error;
  }
}
