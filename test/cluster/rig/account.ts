import assert from 'node:assert/strict';
import { z } from 'zod';
import type { TestCluster } from './test-cluster.ts';
import { until } from './until.ts';

export interface Rule {
  /** The API group; absent: the core group. */
  readonly resource: string;
  readonly group?: string;
  /** The only objects that the rule covers; absent: all. */
  readonly resourceNames?: readonly string[];
  readonly verbs: readonly string[];
}

/** The least permissions that the service needs in a cluster. */
export const MIN_PERMISSIONS: readonly Rule[] = [
  { resource: 'nodes', verbs: ['get', 'list', 'watch'] },
  { resource: 'pods', verbs: ['get', 'list', 'watch', 'delete'] },
  { resource: 'pods/status', verbs: ['patch'] },
  { resource: 'events', verbs: ['create'] },
];

const RBAC = '/apis/rbac.authorization.k8s.io/v1';
/** Longer than any test file runs. */
const TOKEN_SECONDS = 3600;

export const AccessReview = z.object({ status: z.object({ allowed: z.boolean() }) });
const TokenRequest = z.object({ status: z.object({ token: z.string() }) });

const ruleJson = ({ group = '', resource, ...rule }: Rule): object => ({
  apiGroups: [group],
  resources: [resource],
  ...rule,
});

/** A service account that has the permissions in `rules` in every namespace, and no others. */
export class Account {
  readonly #cluster: TestCluster;
  readonly #name: string;
  readonly #rules: readonly Rule[];
  readonly token: string;

  private constructor(cluster: TestCluster, name: string, rules: readonly Rule[], token: string) {
    this.#cluster = cluster;
    this.#name = name;
    this.#rules = rules;
    this.token = token;
  }

  static async create(cluster: TestCluster, name: string, rules = MIN_PERMISSIONS): Promise<Account> {
    const accounts = `/api/v1/namespaces/${cluster.namespace}/serviceaccounts`;
    await cluster.api.create(accounts, { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name } });
    const request = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest' };
    const spec = { expirationSeconds: TOKEN_SECONDS };
    const answer = await cluster.api.create(`${accounts}/${name}/token`, { ...request, spec });
    const account = new Account(cluster, name, rules, TokenRequest.parse(answer).status.token);
    await account.#createRole();
    await account.grant();
    return account;
  }

  /** Binds the account to its role. Resolves when the API server applies the binding. */
  async grant(): Promise<void> {
    const { labels } = this.#cluster;
    await this.#cluster.api.create(`${RBAC}/clusterrolebindings`, {
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'ClusterRoleBinding',
      metadata: { name: this.#roleName, labels },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: this.#roleName },
      subjects: [this.#subject],
    });
    await until(`${this.#name} may do what it was granted`, () => this.#may(this.#rules));
  }

  /** Grants permissions in one namespace. Resolves when the API server applies the binding. */
  async grantIn(namespace: string, rules: readonly Rule[]): Promise<void> {
    const { api } = this.#cluster;
    const roleRef = { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: this.#name };
    const metadata = { name: this.#name };
    const rbac = `${RBAC}/namespaces/${namespace}`;
    await api.create(`${rbac}/roles`, { metadata, rules: rules.map(ruleJson) });
    await api.create(`${rbac}/rolebindings`, { metadata, roleRef, subjects: [this.#subject] });
    await until(`${this.#name} may do it in ${namespace}`, () => this.#may(rules, namespace));
  }

  /**
   * Reports whether the account has the first of these permissions. The API server's authorizer reads bindings from a watch, so
   * it applies them with a delay.
   */
  async #may(rules: readonly Rule[], namespace = this.#cluster.namespace): Promise<boolean> {
    const { api } = this.#cluster;
    const [{ group, resource, verbs } = assert.fail('an account needs a right')] = rules;
    const [name, subresource] = resource.split('/');
    const answer = await api.create('/apis/authorization.k8s.io/v1/subjectaccessreviews', {
      apiVersion: 'authorization.k8s.io/v1',
      kind: 'SubjectAccessReview',
      spec: {
        user: `system:serviceaccount:${this.#cluster.namespace}:${this.#name}`,
        resourceAttributes: { verb: verbs[0], group, resource: name, subresource, namespace },
      },
    });
    return AccessReview.parse(answer).status.allowed;
  }

  /** Revokes all permissions of the account. */
  revoke(): Promise<void> {
    return this.#cluster.api.remove(`${RBAC}/clusterrolebindings/${this.#roleName}`);
  }

  /** Deletes the account, which makes its token invalid. */
  delete(): Promise<void> {
    const { api, namespace } = this.#cluster;
    return api.remove(`/api/v1/namespaces/${namespace}/serviceaccounts/${this.#name}`);
  }

  get #subject(): object {
    return { kind: 'ServiceAccount', namespace: this.#cluster.namespace, name: this.#name };
  }

  get #roleName(): string {
    return `${this.#cluster.run}-${this.#name}`;
  }

  async #createRole(): Promise<void> {
    await this.#cluster.api.create(`${RBAC}/clusterroles`, {
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'ClusterRole',
      metadata: { name: this.#roleName, labels: this.#cluster.labels },
      rules: this.#rules.map(ruleJson),
    });
  }
}
