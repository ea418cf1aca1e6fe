import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Connection } from '#shared/kubernetes/http/connection.ts';
import { Account } from './account.ts';
import { kubeconfigText } from './kubeconfig.ts';
import { type ServiceOptions, ServiceProcess } from './service-process.ts';
import { runName, TestCluster } from './test-cluster.ts';
import { Wiretap } from './wiretap.ts';

/** The context by which the stage's services refer to the cluster. */
export const CONTEXT = 'alpha';

/** A test cluster, a service account with the least permissions, and a directory; services are started on it. */
export class Stage {
  readonly cluster: TestCluster;
  readonly account: Account;
  /** Every service that was started here, the newest last. */
  readonly services: ServiceProcess[] = [];
  /** A kubeconfig that refers to the cluster by its context {@link CONTEXT}. */
  readonly kubeconfig: string;
  #tap: Wiretap | undefined;
  readonly #dir: string;

  private constructor(cluster: TestCluster, account: Account, dir: string, kubeconfig: string) {
    this.cluster = cluster;
    this.account = account;
    this.#dir = dir;
    this.kubeconfig = kubeconfig;
  }

  static async open(): Promise<Stage> {
    const cluster = await TestCluster.open('KUBECONFIG', runName());
    try {
      const account = await Account.create(cluster, 'service');
      const dir = mkdtempSync(join(tmpdir(), 'taintward-cluster-'));
      const { connection } = cluster;
      const stage = new Stage(cluster, account, dir, join(dir, 'kubeconfig'));
      await stage.writeKubeconfig('kubeconfig', connection);
      return stage;
    } catch (error) {
      await cluster.close();
      throw error;
    }
  }

  /** The newest service. */
  get service(): ServiceProcess {
    const service = this.services.at(-1);
    if (!service) throw new Error('No service was started on this stage.');
    return service;
  }

  /** The wiretap that {@link tap} opened. */
  get wiretap(): Wiretap {
    if (!this.#tap) throw new Error('No wiretap was opened on this stage.');
    return this.#tap;
  }

  /** Opens a wiretap in front of the cluster; returns the path of a kubeconfig that refers to the wiretap. */
  async tap(): Promise<string> {
    this.#tap = await Wiretap.open(this.cluster.connection);
    return this.writeKubeconfig('tapped', this.#tap.connection);
  }

  /** Returns the path of a new, empty state directory. */
  newStateDir(): string {
    return mkdtempSync(join(this.#dir, 'state-'));
  }

  /** Returns a path in the stage's directory. */
  path(file: string): string {
    return join(this.#dir, file);
  }

  /** Writes a file into the stage's directory; returns its path. */
  write(file: string, content: string): string {
    const path = this.path(file);
    writeFileSync(path, content, { mode: 0o600 });
    return path;
  }

  /** Writes a kubeconfig by which the account reaches the cluster, as its context {@link CONTEXT}. */
  async writeKubeconfig(
    file: string,
    connection: Pick<Connection, 'requestOptions'>,
    token = this.account.token,
  ): Promise<string> {
    return this.write(file, await kubeconfigText([{ context: CONTEXT, connection, token }]));
  }

  /** Starts a service on the cluster and waits until it watches. The service ends with the stage at the latest. */
  async start({
    stateDir = this.newStateDir(),
    kubeconfig = this.kubeconfig,
    ...options
  }: Partial<Omit<ServiceOptions, 'contexts'>> = {}): Promise<ServiceProcess> {
    const service = await ServiceProcess.spawn({ ...options, kubeconfig, contexts: [CONTEXT], stateDir });
    this.services.push(service);
    await service.ready();
    return service;
  }

  /** Ends every service on the stage by force. */
  async killAll(): Promise<void> {
    await Promise.all(this.services.map((service) => service.kill()));
  }

  async close(): Promise<void> {
    await this.killAll();
    await this.#tap?.close();
    await this.cluster.close();
    rmSync(this.#dir, { recursive: true, force: true });
  }
}
