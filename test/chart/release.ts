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

/** The name under which containers know the cluster outside of which they run. */
const CONTEXT = 'alpha';
/** The right to it comes with a takeover: who is refused knows that there is none. */
const TAKEOVER = '/apis/taintward.dev/v1/takeovers/live';
const ConfigMap = z.object({ data: z.record(z.string(), z.string()) });

export interface ReleaseOptions {
  readonly cluster: TestCluster;
  readonly values: Values;
  /** The name of its Deployment. */
  readonly deployment: string;
  /** What its container runs, of what is in the image. */
  readonly program: ProgramName;
}

/** The chart, installed by helm in a test's own namespace, and its containers, run as processes with the rights of their account. */
export class Release {
  /** What helm says of it. */
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

  /** Starts the container of one more pod; `besides`: what it is told for it runs outside of the cluster. */
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

  /** Waits until of all that were started one says `leading`, and each other `standing`, as states of a cluster; returns that one first. */
  async settled(leading: string, standing: string): Promise<readonly ContainerProcess[]> {
    return until(`one says ${leading}, and each other ${standing}`, async () => {
      const states = await Promise.all(this.#containers.map((each) => each.ready()));
      const leader = this.#containers.find((_, index) => states[index]?.includes(leading));
      const others = this.#containers.filter((each) => each !== leader);
      const stand = others.every((each) => states[this.#containers.indexOf(each)]?.includes(standing));
      return leader !== undefined && stand && [leader, ...others];
    });
  }

  /** What the API server refused to any of them. */
  refused(): readonly TappedRequest[] {
    return this.#wiretap.requests.filter(
      ({ status, path }) => (status === 401 || status === 403) && path !== TAKEOVER,
    );
  }

  /** Installs it anew with other values; returns its Deployment. */
  async upgrade(values: Values): Promise<Deployment> {
    helmOn(this.#cluster, 'upgrade', values);
    return readDeployment(this.#cluster, this.#deploymentName);
  }

  /** Ends what still runs, and takes it all away. */
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
