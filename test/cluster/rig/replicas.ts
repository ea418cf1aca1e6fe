import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { z } from 'zod';
import { ApiError } from '#shared/kubernetes/http/api-error.ts';
import type { Connection } from '#shared/kubernetes/http/connection.ts';
import { deployed, installKinds } from './installed-kinds.ts';
import { kubeconfigText } from './kubeconfig.ts';
import { operatorAccount } from './operator-account.ts';
import { ServiceProcess } from './service-process.ts';
import { runName, TestCluster } from './test-cluster.ts';
import { until } from './until.ts';

/** The context by which replicas outside of the cluster refer to it. */
export const CONTEXT = 'alpha';
/** Longer than any test file runs. */
const TOKEN_SECONDS = 3600;
const TokenRequest = z.object({ status: z.object({ token: z.string() }) });
const RBAC = '/apis/rbac.authorization.k8s.io/v1';

type Reach = Pick<Connection, 'requestOptions'>;

export interface ReplicaOptions {
  /** The connection to the API server; absent: the test's own. */
  readonly connection?: Reach;
  /** A policy document; `false`: none of a file. Absent: enforce everything, without a guard. */
  readonly policy?: string | false;
  /** The directory of another release; absent: the current one. */
  readonly release?: string;
}

const Kept = z.object({
  status: z.object({ revision: z.int(), scheduled: z.int(), held: z.int(), gaveUp: z.int() }),
});
/** The summary fields of a `NodeEviction`; `revision` counts its writes. */
export type Kept = z.output<typeof Kept>['status'];

/**
 * Replicas of the service that keep all state in the cluster, with the permissions that are deployed with them and no
 * others.
 */
export class Replicas {
  readonly cluster: TestCluster;
  readonly #dir: string;
  readonly #token: string;
  readonly #started: ServiceProcess[] = [];

  private constructor(cluster: TestCluster, dir: string, token: string) {
    this.cluster = cluster;
    this.#dir = dir;
    this.#token = token;
  }

  static async open(): Promise<Replicas> {
    const cluster = await TestCluster.open('KUBECONFIG', runName());
    try {
      await installKinds(cluster.api);
      await grant(cluster, 'rbac.yaml', 'taintward');
      const token = await tokenOf('taintward', cluster);
      return new Replicas(cluster, mkdtempSync(join(tmpdir(), 'taintward-replicas-')), token);
    } catch (error) {
      await cluster.close();
      throw error;
    }
  }

  /** Starts a replica and waits until it runs, as the leader or as a standby. */
  async start(options?: ReplicaOptions): Promise<ServiceProcess> {
    const replica = await this.spawn(options);
    await until('a replica runs', () => {
      if (replica.ended) throw new Error(`The replica ended early: ${replica.ended.stderr}`);
      return replica.printed('Health and metrics').length > 0;
    });
    return replica;
  }

  /** Starts a replica and does not wait. */
  async spawn({
    connection = this.cluster.connection,
    policy,
    release,
  }: ReplicaOptions = {}): Promise<ServiceProcess> {
    const kubeconfig = await this.#kubeconfig(`replica-${this.#started.length}`, connection, this.#token);
    const replica = await ServiceProcess.spawn({
      kubeconfig,
      contexts: [CONTEXT],
      inCluster: this.cluster.namespace,
      ...(policy === undefined ? {} : { policy: policy && this.#write('policy.yaml', policy) }),
      ...(release === undefined ? {} : { release }),
    });
    this.#started.push(replica);
    return replica;
  }

  /** Starts a replica and waits until it leads and watches. */
  async startLeader(options?: ReplicaOptions): Promise<ServiceProcess> {
    const replica = await this.start(options);
    await replica.untilPrinted('watching');
    return replica;
  }

  /**
   * Returns the path of a kubeconfig by which an operator reaches the cluster, as its context {@link CONTEXT}, with an
   * operator's permissions.
   */
  async operator(): Promise<string> {
    const { token } = await operatorAccount(this.cluster, 'operator');
    await grant(this.cluster, 'operators.yaml', 'a-operator');
    return this.#kubeconfig('operator', this.cluster.connection, token);
  }

  /** Returns the stored summary of a node; `undefined`: there is none. */
  async kept(node: string): Promise<Kept | undefined> {
    const { api, namespace } = this.cluster;
    const path = `/apis/taintward.dev/v1/namespaces/${namespace}/nodeevictions/${node}`;
    const object = await api.read(path).catch((error: unknown) => {
      if (!(error instanceof ApiError && error.status === 404)) throw error;
    });
    return object === undefined ? undefined : Kept.parse(object).status;
  }

  /** Stops all running replicas gracefully, so that the next one leads immediately. */
  async stopAll(): Promise<void> {
    await Promise.all(this.#started.map(async (replica) => replica.ended ?? replica.stop()));
  }

  async killAll(): Promise<void> {
    await Promise.all(this.#started.map((replica) => replica.kill()));
  }

  async close(): Promise<void> {
    await this.killAll();
    await this.cluster.close();
    rmSync(this.#dir, { recursive: true, force: true });
  }

  async #kubeconfig(file: string, connection: Reach, token: string): Promise<string> {
    return this.#write(file, await kubeconfigText([{ context: CONTEXT, connection, token }]));
  }

  #write(file: string, content: string): string {
    const path = join(this.#dir, file);
    writeFileSync(path, content, { mode: 0o600 });
    return path;
  }
}

/**
 * Creates the objects that a file of `deploy/in-cluster` defines, in the test's own namespace and for that service
 * account of it.
 */
async function grant(cluster: TestCluster, file: string, account: string): Promise<void> {
  const { api, namespace, run, labels } = cluster;
  const named = (name: string) => `${run}-${name}`;
  for (const object of deployed(file)) {
    const { kind, metadata, roleRef, subjects } = Manifest.parse(object);
    const ofAll = kind.startsWith('Cluster');
    const where =
      kind === 'ServiceAccount'
        ? `/api/v1/namespaces/${namespace}`
        : ofAll
          ? RBAC
          : `${RBAC}/namespaces/${namespace}`;
    await api.create(`${where}/${kind.toLowerCase()}s`, {
      ...object,
      metadata: ofAll ? { name: named(metadata.name), labels } : { name: metadata.name },
      ...(roleRef
        ? { roleRef: { ...roleRef, name: roleRef.kind === 'Role' ? roleRef.name : named(roleRef.name) } }
        : {}),
      ...(subjects ? { subjects: [{ kind: 'ServiceAccount', name: account, namespace }] } : {}),
    });
  }
}

/** Returns a token of a service account in that namespace. */
export async function tokenOf(
  account: string,
  { api, namespace }: Pick<TestCluster, 'api' | 'namespace'>,
): Promise<string> {
  const request = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest' };
  const spec = { expirationSeconds: TOKEN_SECONDS };
  const path = `/api/v1/namespaces/${namespace}/serviceaccounts/${account}/token`;
  return TokenRequest.parse(await api.create(path, { ...request, spec })).status.token;
}

const Manifest = z.object({
  kind: z.string(),
  metadata: z.object({ name: z.string() }),
  roleRef: z.looseObject({ kind: z.string(), name: z.string() }).optional(),
  subjects: z.array(z.unknown()).optional(),
});
