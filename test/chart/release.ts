import { randomInt } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { z } from 'zod';
import { bundleProgram, type ProgramName } from '#deploy/build/bundle.ts';
import { kubeconfigText } from '#test/cluster/rig/kubeconfig.ts';
import type { TestCluster } from '#test/cluster/rig/test-cluster.ts';
import { until } from '#test/cluster/rig/until.ts';
import { type TappedRequest, Wiretap } from '#test/cluster/rig/wiretap.ts';
import { chartArguments, helm, type Values } from '../../deploy/helm.ts';
import { ContainerProcess, Deployment } from './container.ts';
import { kubectl } from './kubectl.ts';

/** The context by which containers outside of the cluster refer to it. */
const CONTEXT = 'alpha';
/** The permission for it is granted with a takeover: a rejected request shows that there is none. */
const TAKEOVER = '/apis/taintward.dev/v1/takeovers/live';
const ConfigMap = z.object({ data: z.record(z.string(), z.string()) });

export interface ReleaseOptions {
  readonly cluster: TestCluster;
  readonly values: Values;
  /** The name of its Deployment. */
  readonly deployment: string;
  /** The program of the image that its container runs. */
  readonly program: ProgramName;
}

/**
 * The chart, installed by helm in a test's own namespace, and its containers, run as processes with the permissions of
 * their account.
 */
export class Release {
  /** The notes that helm prints. */
  readonly notes: string;
  readonly deployment: Deployment;
  readonly #cluster: TestCluster;
  readonly #deploymentName: string;
  readonly #wiretap: Wiretap;
  readonly #dir: string;
  readonly #containers: ContainerProcess[] = [];
  /** Each pod has an address of its own: others on this machine may serve the same port. */
  readonly #network = `127.${randomInt(1, 255)}.${randomInt(1, 255)}`;

  private constructor(
    { cluster, deployment: name }: ReleaseOptions,
    parts: {
      readonly notes: string;
      readonly deployment: Deployment;
      readonly wiretap: Wiretap;
      readonly dir: string;
    },
  ) {
    this.#cluster = cluster;
    this.#deploymentName = name;
    this.notes = parts.notes;
    this.deployment = parts.deployment;
    this.#wiretap = parts.wiretap;
    this.#dir = parts.dir;
  }

  static async install(options: ReleaseOptions): Promise<Release> {
    const { cluster, values, deployment: name, program } = options;
    const dir = mkdtempSync(join(tmpdir(), 'taintward-chart-'));
    bundleProgram(program, dir);
    const notes = helmOn(cluster, 'install', values);
    const wiretap = await Wiretap.open(cluster.connection);
    const deployment = await readDeployment(cluster, name);
    const { serviceAccountName } = deployment.spec.template.spec;
    const token = kubectl([
      ...['create', 'token', serviceAccountName],
      ...['--namespace', cluster.namespace],
    ]).trim();
    const access = await kubeconfigText([{ context: CONTEXT, connection: wiretap.connection, token }]);
    writeFileSync(join(dir, 'kubeconfig'), access, { mode: 0o600 });
    return new Release(options, { notes, deployment, wiretap, dir });
  }

  /** Starts the container of another pod; `besides`: the additional settings outside of the cluster. */
  async start(besides: {
    readonly args?: readonly string[];
    readonly env?: Readonly<Record<string, string>>;
  }): Promise<ContainerProcess> {
    const { api, namespace } = this.#cluster;
    const container = await ContainerProcess.start({
      image: this.#dir,
      deployment: this.deployment,
      podIp: `${this.#network}.${this.#containers.length + 1}`,
      dataOf: async (name) =>
        ConfigMap.parse(await api.read(`/api/v1/namespaces/${namespace}/configmaps/${name}`)).data,
      args: ['--context', CONTEXT, '--kubeconfig', join(this.#dir, 'kubeconfig'), ...(besides.args ?? [])],
      env: besides.env ?? {},
    });
    this.#containers.push(container);
    return container;
  }

  /**
   * Waits until one of the started containers reports `leading` as the cluster's state, and each other `standing`;
   * returns the leading one first.
   */
  async settled(leading: string, waiting: string): Promise<readonly ContainerProcess[]> {
    return until(`one says ${leading}, and each other ${waiting}`, async () => {
      const states = await Promise.all(this.#containers.map((each) => each.ready()));
      const leader = this.#containers.find((_, index) => states[index]?.includes(leading));
      const others = this.#containers.filter((each) => each !== leader);
      const stand = others.every((each) => states[this.#containers.indexOf(each)]?.includes(waiting));
      return leader !== undefined && stand && [leader, ...others];
    });
  }

  /** Returns the requests of all containers that the API server rejected. */
  refused(): readonly TappedRequest[] {
    return this.#wiretap.requests.filter(
      ({ status, path }) => (status === 401 || status === 403) && path !== TAKEOVER,
    );
  }

  /** Upgrades the release to other values; returns its Deployment. */
  async upgrade(values: Values): Promise<Deployment> {
    helmOn(this.#cluster, 'upgrade', values);
    return readDeployment(this.#cluster, this.#deploymentName);
  }

  /** Ends the running containers, and uninstalls the release. */
  async uninstall(): Promise<void> {
    for (const container of this.#containers) container.close();
    await this.#wiretap.close();
    rmSync(this.#dir, { recursive: true, force: true });
    helm(['uninstall', 'taintward', '--ignore-not-found', '--namespace', this.#cluster.namespace]);
  }
}

const helmOn = ({ namespace }: TestCluster, command: string, values: Values): string =>
  helm([command, 'taintward', ...chartArguments(namespace)], JSON.stringify(values));

const readDeployment = async ({ api, namespace }: TestCluster, name: string): Promise<Deployment> =>
  Deployment.parse(await api.read(`/apis/apps/v1/namespaces/${namespace}/deployments/${name}`));
