import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { Mode } from '#shared/eviction/policy.ts';
import type { Takeover } from '#shared/kubernetes/api.ts';
import { ApiError } from '#shared/kubernetes/http/api-error.ts';
import { projectTakeover, TAKEOVER_PATH } from '#shared/kubernetes/takeover.ts';
import { ControllerManager } from './controller-manager.ts';
import { MortalNodes } from './mortal-nodes.ts';
import { operatorAccount, type Size } from './operator-account.ts';
import type { ServiceProcess } from './service-process.ts';
import { CONTEXT, Stage } from './stage.ts';
import { until } from './until.ts';
import { WatchedNode, type WatchedTaint } from './watched.ts';

const ROOT = join(import.meta.dirname, '../../..');
/** The node lifecycle controller taints the nodes of a mostly unhealthy zone more slowly, or not at all. */
const STEADY_NODES = 5;
const RBAC = '/apis/rbac.authorization.k8s.io/v1/clusterrolebindings';

/** The fields of a policy document that tests set; `mode` is enforce by default. */
interface PolicyDocument {
  readonly mode?: Mode;
  readonly treatAsNoExecute?: readonly string[];
  readonly tolerationSecondsOverrides?: Readonly<Record<string, number>>;
}

/** A stage on which nodes live and die under the real node-lifecycle and taint-eviction controllers. */
export class TakeoverStage {
  readonly stage: Stage;
  readonly builtIn: ControllerManager;
  readonly nodes: MortalNodes;
  /** Paths of kubeconfigs. */
  readonly #people: Readonly<Record<'viewer' | 'admin', string>>;

  private constructor(
    stage: Stage,
    builtIn: ControllerManager,
    nodes: MortalNodes,
    people: Readonly<Record<'viewer' | 'admin', string>>,
  ) {
    this.stage = stage;
    this.builtIn = builtIn;
    this.nodes = nodes;
    this.#people = people;
  }

  static async open(): Promise<TakeoverStage> {
    const builtIn = await ControllerManager.start('node-lifecycle-controller', 'taint-eviction-controller');
    const stage = await Stage.open();
    const kubeconfigOf = async (size: Size) => {
      const { token } = await operatorAccount(stage.cluster, size);
      return stage.writeKubeconfig(`${size}.kubeconfig`, stage.cluster.connection, token);
    };
    const people = { viewer: await kubeconfigOf('viewer'), admin: await kubeconfigOf('admin') };
    const nodes = new MortalNodes(stage.cluster);
    for (let steady = 0; steady < STEADY_NODES; steady++) await nodes.add(`steady-${steady}`);
    return new TakeoverStage(stage, builtIn, nodes, people);
  }

  /**
   * Runs `taintward takeover …` on the cluster with the least permissions it needs: for `status`, a viewer's. Returns
   * its output. The nodes renew their Leases meanwhile.
   */
  async command(verb: 'apply' | 'release' | 'status', ...args: readonly string[]): Promise<string> {
    const kubeconfig = this.#people[verb === 'status' ? 'viewer' : 'admin'];
    const reach = ['--context', CONTEXT, '--kubeconfig', kubeconfig];
    const argv = ['functions/cli/main.ts', 'takeover', verb, ...args, ...reach];
    return (await promisify(execFile)(process.execPath, argv, { cwd: ROOT })).stdout;
  }

  /** Starts the service under a policy, with an account that has the least permissions and may renew a takeover. */
  async serve(policy: PolicyDocument, env: Readonly<Record<string, string>> = {}): Promise<ServiceProcess> {
    const { cluster } = this.stage;
    const name = `${cluster.run}-renewer`;
    await createIfMissing(
      cluster.api.create(RBAC, {
        metadata: { name, labels: cluster.labels },
        roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'taintward-takeover' },
        subjects: [{ kind: 'ServiceAccount', namespace: cluster.namespace, name: 'service' }],
      }),
    );
    const document = this.stage.write('policy.yaml', JSON.stringify({ mode: 'enforce', ...policy }));
    return this.stage.start({ policy: document, env });
  }

  /** Returns the cluster's `takeovers/live`; `undefined`: it does not exist. */
  async live(): Promise<Takeover | undefined> {
    try {
      return projectTakeover(await this.stage.cluster.api.read(TAKEOVER_PATH));
    } catch (error) {
      if (error instanceof ApiError && error.status === 404) return undefined;
      throw error;
    }
  }

  /**
   * Waits for a heartbeat that is newer than `since`, by this machine's clock; resolves with the time of the heartbeat.
   */
  heartbeatAfter(since: number): Promise<number> {
    return until('the takeover is renewed', async () => {
      const { heartbeat } = (await this.live()) ?? {};
      return heartbeat !== undefined && heartbeat > since && heartbeat;
    });
  }

  async taints(node: string): Promise<readonly WatchedTaint[]> {
    return WatchedNode.parse(await this.stage.cluster.api.read(`/api/v1/nodes/${node}`)).spec.taints;
  }

  /** Waits until a node has a taint of this key and effect. */
  async tainted(node: string, key: string, effect: string): Promise<number> {
    await until(`node ${node} has the taint ${key}:${effect}`, async () =>
      (await this.taints(node)).some((taint) => taint.key === key && taint.effect === effect),
    );
    return Date.now();
  }

  /** Closes everything, even if some of it fails to close. */
  async close(): Promise<void> {
    await using closing = new AsyncDisposableStack();
    closing.defer(() => this.builtIn.stop());
    closing.defer(() => this.stage.close());
    closing.defer(() => this.nodes.close());
    closing.defer(async () => void (await this.command('release')));
  }
}

/** Ignores the error that the object exists already. */
async function createIfMissing(creating: Promise<unknown>): Promise<void> {
  await creating.catch((error: unknown) => {
    if (!(error instanceof ApiError && error.status === 409)) throw error;
  });
}
