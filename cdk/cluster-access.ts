import { Stack } from 'aws-cdk-lib';
import { Grant } from 'aws-cdk-lib/aws-iam';
import { Construct } from 'constructs';
import { type Grantee, grantWildcard } from './grantee.ts';

export interface ClusterAccessProps {
  /** Names, or beginnings of names, of the secrets that hold kubeconfigs. */
  readonly kubeconfigSecrets: readonly string[];
  /** ARNs of the KMS keys that these secrets are encrypted by; absent: the one of Secrets Manager itself. */
  readonly secretKeys?: readonly string[];
  /** ARNs of the roles that may be assumed. */
  readonly clusterRoles: readonly string[];
}

/** What reaching the registered clusters takes of AWS. Who may do what in them is the clusters' own RBAC. */
export class ClusterAccess extends Construct {
  readonly #secretArns: string[];
  readonly #secretKeys: string[];
  readonly #roleArns: string[];
  readonly #eksArns: string[];

  constructor(
    scope: Construct,
    id: string,
    { kubeconfigSecrets, secretKeys = [], clusterRoles }: ClusterAccessProps,
  ) {
    super(scope, id);
    const stack = Stack.of(this);
    this.#secretArns = kubeconfigSecrets.map((name) =>
      stack.formatArn({
        service: 'secretsmanager',
        // Secrets Manager appends a dash and six characters of its own to a name.
        resource: `secret:${name.endsWith('*') ? name : `${name}-??????`}`,
      }),
    );
    this.#secretKeys = [...secretKeys];
    this.#roleArns = [...clusterRoles];
    this.#eksArns = [
      stack.formatArn({ service: 'eks', region: '*', resource: 'cluster', resourceName: '*' }),
    ];
  }

  /** Lets a process find and enter the clusters that are registered. */
  bind(grantee: Grantee): void {
    grantWildcard(grantee, {
      action: 'eks:DescribeCluster',
      resources: this.#eksArns,
      reason:
        'Clusters are registered at run time, without a deployment. Reading where they are opens none of them.',
    });
    grantWildcard(grantee, {
      action: 'sts:AssumeRole',
      resources: this.#roleArns,
      reason:
        'Roles of clusters in any account, by the name that says they are meant for this (taintward:clusterRoles).',
    });
    grantWildcard(grantee, {
      action: 'secretsmanager:GetSecretValue',
      resources: this.#secretArns,
      reason: 'Kubeconfigs, by the name that says they are meant for this (taintward:kubeconfigSecrets).',
    });
    if (this.#secretKeys.length === 0) return;
    Grant.addToPrincipal({
      grantee,
      actions: ['kms:Decrypt'],
      resourceArns: this.#secretKeys,
      // For what Secrets Manager was asked for, and nothing else that the keys encrypt.
      conditions: {
        StringEquals: { 'kms:ViaService': `secretsmanager.${Stack.of(this).region}.amazonaws.com` },
      },
    });
  }
}
