import { join } from 'node:path';
import { after, afterEach, before } from 'node:test';
import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { SchedulerClient } from '@aws-sdk/client-scheduler';
import { SecretsManagerClient } from '@aws-sdk/client-secrets-manager';
import { SQSClient } from '@aws-sdk/client-sqs';
import { awsClientConfig } from '#test/aws/endpoint.ts';
import { runName } from '#test/cluster/rig/test-cluster.ts';
import { until } from '#test/cluster/rig/until.ts';
import { type CommandResult, ROOT, run } from './command.ts';
import { Deployment } from './deployment.ts';
import { accountEnvironment, type EmulatedAccount, openEmulatedAccount } from './emulated-account.ts';
import { taskLaunch } from './image/task.ts';
import { ManagedCluster } from './managed-cluster.ts';
import { DeployedQueue } from './queues.ts';
import { type Invocation, RawAws } from './raw-aws.ts';
import { type Launch, printedLaunch, RelayProcess } from './relay-process.ts';
import { StoredState } from './stored-state.ts';

/** The program behind `npx taintward` in the guide. */
const CLI = join(ROOT, 'functions/cli/taintward.js');
const CLI_WITHIN_MS = 30_000;
/** Without a policy a cluster is observed. */
export const ENFORCE = join(import.meta.dirname, 'enforce.yaml');
/** The guide's names, and their names here. */
export const GUIDE_NAMES = [
  ['staging', 'beta'],
  ['stage', 'beta'],
  ['prod', 'alpha'],
  ['REGION', 'us-east-1'],
  ['ACCOUNT', '000000000000'],
] as const;
/** The stack's name for the task definition of its relays. */
const RELAY_TASK = 'taintward-relay';
/** Lines of each process that a failed test shows. */
const SHOWN_LINES = 30;

type QueueName = 'nodeDeltas' | 'nodeDeltasDead' | 'podDeltas' | 'evictionsDue' | 'evictionsDueDead';

/** The deployed service, with two clusters and the relays that tests start. */
export class DeployedStage {
  readonly account: EmulatedAccount;
  readonly deployment: Deployment;
  readonly alpha: ManagedCluster;
  readonly beta: ManagedCluster;
  readonly state: StoredState;
  readonly queues: Readonly<Record<QueueName, DeployedQueue>>;
  readonly scheduler: SchedulerClient;
  readonly raw: RawAws;
  /** Every running relay that was started here, the oldest first. */
  readonly relays: RelayProcess[] = [];
  readonly #openedAt = Date.now();
  /** Resources that are closed with the stage, the last first. */
  #opened: AsyncDisposableStack | undefined;

  private constructor(
    parts: Pick<
      DeployedStage,
      'account' | 'deployment' | 'alpha' | 'beta' | 'state' | 'queues' | 'scheduler' | 'raw'
    >,
  ) {
    this.account = parts.account;
    this.deployment = parts.deployment;
    this.alpha = parts.alpha;
    this.beta = parts.beta;
    this.state = parts.state;
    this.queues = parts.queues;
    this.scheduler = parts.scheduler;
    this.raw = parts.raw;
  }

  /** Deploys a service with two clusters from scratch with the guide's commands. */
  static async open(): Promise<DeployedStage> {
    const opened = new AsyncDisposableStack();
    try {
      const stage = await DeployedStage.#open(opened);
      stage.#opened = opened;
      return stage;
    } catch (error) {
      await opened.disposeAsync();
      throw error;
    }
  }

  static async #open(opened: AsyncDisposableStack): Promise<DeployedStage> {
    const account = await openEmulatedAccount();
    opened.defer(() => account.close());
    const deployment = new Deployment(account);
    opened.defer(() => deployment.close());
    await deployment.bootstrap();
    await deployment.deploy();
    // A given account still exists in the next run.
    if (!account.isOurs) opened.defer(() => deployment.destroy());
    const config = awsClientConfig(account.url);
    const secrets = new SecretsManagerClient(config);
    const sqs = new SQSClient({ ...config, useQueueUrlAsEndpoint: false });
    // Both clusters use one name, so that their objects have equal names.
    const name = runName();
    const alpha = await ManagedCluster.open('alpha', 'KUBECONFIG', name, secrets);
    opened.defer(() => alpha.close());
    const beta = await ManagedCluster.open('beta', 'KUBECONFIG_2', name, secrets);
    opened.defer(() => beta.close());
    const stage = new DeployedStage({
      account,
      deployment,
      alpha,
      beta,
      state: new StoredState(new DynamoDBClient(config), deployment.output('TableName')),
      queues: await openQueues(sqs),
      scheduler: new SchedulerClient(config),
      raw: new RawAws(account.url),
    });
    opened.defer(async () => void (await Promise.all(stage.relays.map((relay) => relay.kill()))));
    for (const cluster of [alpha, beta]) await stage.register(cluster);
    return stage;
  }

  /** The environment of a user who follows the guide. */
  get guideEnvironment(): NodeJS.ProcessEnv {
    const { environment } = this.deployment;
    return { ...environment, KUBECONFIG: process.env['KUBECONFIG'], TAINTWARD_TABLE: this.state.tableName };
  }

  /** Runs `npx taintward …`. Rejects when it fails. */
  cli(...args: readonly string[]): Promise<CommandResult> {
    return this.cliIn({}, ...args);
  }

  /** Runs the same for the service whose table has that name. */
  cliOf(table: string, ...args: readonly string[]): Promise<CommandResult> {
    return this.cliIn({ TAINTWARD_TABLE: table }, ...args);
  }

  /** Runs the same with these environment variables added. */
  cliIn(more: NodeJS.ProcessEnv, ...args: readonly string[]): Promise<CommandResult> {
    const env = { ...accountEnvironment(this.account.url), TAINTWARD_TABLE: this.state.tableName, ...more };
    return run(process.execPath, [CLI, ...args], { env, withinMs: CLI_WITHIN_MS });
  }

  async register({ name, secretArn }: ManagedCluster): Promise<void> {
    await this.cli('clusters', 'add', name, '--kubeconfig-secret', secretArn, '--context', name);
    await this.cli('policy', 'apply', '--file', ENFORCE, name, '--yes');
  }

  async unregister({ name }: ManagedCluster): Promise<void> {
    await this.cli('clusters', 'remove', '--yes', name);
  }

  /**
   * Starts another relay, by default as a task of the stack; in a stack without relays, with the command that it
   * prints.
   */
  async startRelay(launch?: Launch): Promise<RelayProcess> {
    const relay = await RelayProcess.start(this.account.url, launch ?? (await this.#task()));
    this.relays.push(relay);
    return relay;
  }

  async #task(): Promise<Launch> {
    if (this.account.isLocalStack) return printedLaunch(this.deployment.output('RelayCommand'));
    return taskLaunch(await this.raw.taskDefinition(RELAY_TASK), (name) => this.deployment.image(name));
  }

  /** Waits until a relay, or one of two, watches both clusters. */
  async served(): Promise<void> {
    await until('both clusters are watched', async () => {
      const states = await Promise.all(this.relays.map((relay) => relay.states()));
      return ['alpha', 'beta'].every((name) => states.some((each) => each.get(name) === 'live'));
    });
  }

  /** Makes `count` relays run, and both clusters watched. */
  async withRelays(count: number): Promise<readonly RelayProcess[]> {
    while (this.relays.length < count) await this.startRelay();
    for (const surplus of this.relays.splice(count)) await surplus.stop();
    if (count > 0) await this.served();
    return this.relays;
  }

  /** `kill -9`. */
  async killRelay(relay: RelayProcess): Promise<void> {
    this.relays.splice(this.relays.indexOf(relay), 1);
    await relay.kill();
  }

  /** Returns a function's invocations since a time. */
  invocations(name: string, since: number): Promise<readonly Invocation[]> {
    return this.raw.invocations(this.deployment.logGroup(name), since);
  }

  /** Returns a function's log since a time. */
  logged(name: string, since: number): Promise<readonly string[]> {
    return this.raw.logged(this.deployment.logGroup(name), since);
  }

  check(): void {
    for (const { cluster } of [this.alpha, this.beta]) cluster.check();
  }

  /** Returns the last output of relays and functions, for the analysis of a failed test. */
  async lastWords(): Promise<readonly string[]> {
    const relays = this.relays.flatMap((relay, index) =>
      relay.lines.slice(-SHOWN_LINES).map((line) => `relay ${index}: ${JSON.stringify(line)}`),
    );
    const functions = await Promise.all(
      ['node-delta', 'pod-delta', 'evict', 'expiry'].map(async (name) => {
        const lines = await this.logged(name, this.#openedAt).catch(() => []);
        const own = lines.filter((line) => line.startsWith('{'));
        return own.slice(-SHOWN_LINES).map((line) => `${name}: ${line}`);
      }),
    );
    return [...relays, ...functions.flat()];
  }

  async close(): Promise<void> {
    await this.#opened?.disposeAsync();
  }
}

async function openQueues(client: SQSClient): Promise<DeployedStage['queues']> {
  const open = (name: string) => DeployedQueue.named(client, `taintward-${name}`);
  const [nodeDeltas, nodeDeltasDead, podDeltas, evictionsDue, evictionsDueDead] = await Promise.all([
    open('node-deltas.fifo'),
    open('node-deltas-dlq.fifo'),
    open('pod-deltas.fifo'),
    open('evictions-due'),
    open('evictions-due-dlq'),
  ]);
  return { nodeDeltas, nodeDeltasDead, podDeltas, evictionsDue, evictionsDueDead };
}

let opened: DeployedStage | undefined;

before(async () => {
  opened = await DeployedStage.open();
});
afterEach(async (context) => {
  if (!('passed' in context) || context.passed) return;
  for (const line of (await opened?.lastWords()) ?? []) context.diagnostic(line);
});
afterEach(() => opened?.check());
after(async () => {
  await opened?.close();
});

/** Returns the only stage of all files; call this function inside tests. */
export function deployed(): DeployedStage {
  if (!opened) throw new Error('The service is deployed while tests run only.');
  return opened;
}
