import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { GetSecretValueCommand, SecretsManagerClient } from '@aws-sdk/client-secrets-manager';
import { awsClientConfig } from '#test/aws/endpoint.ts';
import { until } from '#test/cluster/rig/until.ts';
import { ROOT } from './command.ts';
import { type DeployedStage, ENFORCE } from './deployed-stage.ts';
import type { ManagedCluster } from './managed-cluster.ts';
import { type Launch, RelayProcess } from './relay-process.ts';

/** The entry point of `npm run agent`. */
const MAIN = join(ROOT, 'functions/agent/main.ts');

/** A cluster's agent: its resources in the account, and its process, which a test starts, kills, and starts again. */
export class Agent {
  readonly id: string;
  readonly #stage: DeployedStage;
  readonly #cluster: ManagedCluster;
  readonly #launch: Launch;
  readonly #closing: AsyncDisposableStack;
  #process: RelayProcess | undefined;

  private constructor(
    id: string,
    stage: DeployedStage,
    parts: {
      readonly cluster: ManagedCluster;
      readonly launch: Launch;
      readonly closing: AsyncDisposableStack;
    },
  ) {
    this.id = id;
    this.#stage = stage;
    this.#cluster = parts.cluster;
    this.#launch = parts.launch;
    this.#closing = parts.closing;
  }

  /** Deploys the agent's stack, whose outputs configure the agent. */
  static async open(id: string, stage: DeployedStage, cluster: ManagedCluster): Promise<Agent> {
    const closing = new AsyncDisposableStack();
    const { deployment } = stage;
    const settings = await deployment.deployAgent(id, cluster.name);
    closing.defer(() => deployment.destroyAgent(id, cluster.name));
    const { SecretString = '' } = await new SecretsManagerClient(awsClientConfig(stage.account.url)).send(
      new GetSecretValueCommand({ SecretId: cluster.secretArn }),
    );
    const dir = mkdtempSync(join(tmpdir(), 'taintward-agent-'));
    closing.defer(async () => rmSync(dir, { recursive: true }));
    const kubeconfig = join(dir, 'kubeconfig');
    writeFileSync(kubeconfig, SecretString, { mode: 0o600 });
    const launch: Launch = {
      program: process.execPath,
      args: [MAIN, '--context', cluster.name, '--kubeconfig', kubeconfig],
      cwd: ROOT,
      env: settings,
    };
    return new Agent(id, stage, { cluster, launch, closing });
  }

  /** Registers the cluster with this agent instead of with direct access. */
  async takeOver(): Promise<void> {
    await this.#stage.unregister(this.#cluster);
    await this.#stage.cli('clusters', 'add', this.#cluster.name, '--agent', this.id);
    await this.#stage.cli('policy', 'apply', '--file', ENFORCE, this.#cluster.name, '--yes');
  }

  /** Starts the agent, and waits until it holds its cluster's lease. */
  async start(): Promise<RelayProcess> {
    const started = await RelayProcess.start(this.#stage.account.url, this.#launch);
    this.#process = started;
    const { name } = this.#cluster;
    await until('the agent hears its cluster', async () => {
      if (started.ended) throw new Error('The agent ended.');
      return (await started.states()).get(name) === 'live';
    });
    return started;
  }

  /** `kill -9`. */
  async kill(): Promise<void> {
    await this.#process?.kill();
    this.#process = undefined;
  }

  /** Stops the agent, registers the cluster with direct access again, and removes the agent's resources. */
  async close(): Promise<void> {
    await this.#process?.stop();
    await this.#stage.unregister(this.#cluster);
    await this.#stage.register(this.#cluster);
    await this.#closing.disposeAsync();
  }
}
