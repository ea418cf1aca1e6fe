import { Stack } from 'aws-cdk-lib';
import { Grant } from 'aws-cdk-lib/aws-iam';
import { Construct } from 'constructs';
import type { Part } from '#shared/state/registry.ts';
import type { Config } from './config.ts';
import { type Grantee, grantWildcard } from './grantee.ts';

/** Of which secrets and roles a part of the service may make use. */
export interface Ways {
  /** Names, or beginnings of names, of the secrets that hold kubeconfigs. */
  readonly secrets: readonly string[];
  /** ARNs of the roles that may be assumed. */
  readonly roles: readonly string[];
}

/** What reaching the registered clusters takes of AWS, for each part. Who may do what in them is the clusters' own RBAC. */
export class ClusterAccess extends Construct {
  readonly #ways: { readonly [P in Part]: Ways };
  readonly #secretKeys: readonly string[];
  readonly #organization: string | undefined;

  constructor(scope: Construct, id: string, config: Config) {
    super(scope, id);
    const { kubeconfigSecrets, clusterRoles } = config;
    this.#secretKeys = config.secretKmsKeys ?? [];
    this.#organization = config.organization;
    this.#ways = {
      relay: {
        secrets: [...kubeconfigSecrets, ...config.relayKubeconfigSecrets],
        roles: [...clusterRoles, ...config.relayClusterRoles],
      },
      evict: {
        secrets: [...kubeconfigSecrets, ...config.evictKubeconfigSecrets],
        roles: [...clusterRoles, ...config.evictClusterRoles],
      },
    };
  }

  /** Lets a process find and enter the clusters that are registered, as that part. `instead`: of the ways that part has. */
  bind(grantee: Grantee, part: Part, instead: Partial<Ways> = {}): void {
    this.#bind(grantee, { ...this.#ways[part], ...instead });
  }

  /** Lets somebody find and enter them as either part, to see whether they can be managed. */
  bindBoth(grantee: Grantee): void {
    const { relay, evict } = this.#ways;
    this.#bind(grantee, {
      secrets: [...new Set([...relay.secrets, ...evict.secrets])],
      roles: [...new Set([...relay.roles, ...evict.roles])],
    });
  }

  #bind(grantee: Grantee, { secrets, roles }: Ways): void {
    const stack = Stack.of(this);
    grantWildcard(grantee, {
      action: 'eks:DescribeCluster',
      resources: [stack.formatArn({ service: 'eks', region: '*', resource: 'cluster', resourceName: '*' })],
      reason:
        'Clusters are registered at run time, without a deployment. Reading where they are opens none of them.',
    });
    grantWildcard(grantee, {
      action: 'sts:AssumeRole',
      resources: roles,
      // Secrets are named with this account; a role of that name anybody can make in theirs.
      ...(this.#organization === undefined
        ? {}
        : { conditions: { StringEquals: { 'aws:ResourceOrgID': this.#organization } } }),
      reason:
        'Roles of clusters in any account, by the name that says they are meant for this (taintward:clusterRoles).',
    });
    grantWildcard(grantee, {
      action: 'secretsmanager:GetSecretValue',
      resources: secrets.map((name) =>
        stack.formatArn({
          service: 'secretsmanager',
          // Secrets Manager appends a dash and six characters of its own to a name.
          resource: `secret:${name.endsWith('*') ? name : `${name}-??????`}`,
        }),
      ),
      reason: 'Kubeconfigs, by the name that says they are meant for this (taintward:kubeconfigSecrets).',
    });
    if (this.#secretKeys.length === 0) return;
    Grant.addToPrincipal({
      grantee,
      actions: ['kms:Decrypt'],
      resourceArns: [...this.#secretKeys],
      // For what Secrets Manager was asked for, and nothing else that the keys encrypt.
      conditions: {
        StringEquals: { 'kms:ViaService': `secretsmanager.${Stack.of(this).region}.amazonaws.com` },
      },
    });
  }
}
