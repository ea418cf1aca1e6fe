import { Stack } from 'aws-cdk-lib';
import { Construct } from 'constructs';
import type { ClusterGrants } from '#shared/access/cluster-grants.ts';
import type { clusterGrantsVariables, ValuesOf } from '#shared/aws/environment.ts';
import type { Part } from '#shared/state/registry.ts';
import { ALL_ROLES, type Config, ConfigError } from './config.ts';
import { type Grantee, grant, grantWildcard } from './grantee.ts';

/** Lambda allows 4 KB for all variables of a function. Those of `evict` besides this one have at most 1.3 KB. */
const MAX_GRANTS_CHARACTERS = 2_700;

/** The secrets and roles that a part of the service may use. */
export interface Ways {
  /** Names, or prefixes of names, of the secrets that hold kubeconfigs. */
  readonly secrets: readonly string[];
  /** ARNs of the roles that may be assumed. */
  readonly roles: readonly string[];
}

/** AWS permissions to reach the clusters. The clusters' own RBAC defines the permissions inside. */
export class ClusterAccess extends Construct {
  readonly #ways: { readonly [P in Part]: Ways };
  /** The ARNs of {@link bind}, with wildcards. */
  readonly #granted: { readonly [P in Part]: Set<string> } = { relay: new Set(), evict: new Set() };
  readonly #secretKeys: readonly string[];
  readonly #organization: string | undefined;

  constructor(scope: Construct, id: string, config: Config) {
    super(scope, id);
    const { kubeconfigSecrets, clusterRoles } = config;
    this.#secretKeys = config.secretKmsKeys ?? [];
    this.#organization = config.organization;
    const waysOf = (part: Part): Ways => ({
      secrets: [...kubeconfigSecrets, `taintward-${part}/*`],
      roles: [...clusterRoles, `${ALL_ROLES}taintward-${part}*`],
    });
    this.#ways = { relay: waysOf('relay'), evict: waysOf('evict') };
  }

  /** Allows a process to find and access clusters as that part. `instead` replaces secrets or roles of the part. */
  bind(grantee: Grantee, part: Part, instead: Partial<Ways> = {}): void {
    const { secrets, roles } = { ...this.#ways[part], ...instead };
    const stack = Stack.of(this);
    const secretArns = secrets.map((name) =>
      stack.formatArn({
        service: 'secretsmanager',
        // Secrets Manager appends a dash and six random characters to a name.
        resource: `secret:${name.endsWith('*') ? name : `${name}-??????`}`,
      }),
    );
    grantWildcard(grantee, {
      action: 'eks:DescribeCluster',
      resources: [stack.formatArn({ service: 'eks', region: '*', resource: 'cluster', resourceName: '*' })],
      reason:
        'Clusters are registered at run time, without a deployment. Reading where they are opens none of them.',
    });
    grantWildcard(grantee, {
      action: 'sts:AssumeRole',
      resources: roles,
      // Names of secrets include this account, but any other account can contain a role of that name.
      ...(this.#organization === undefined
        ? {}
        : { conditions: { StringEquals: { 'aws:ResourceOrgID': this.#organization } } }),
      reason:
        'Roles of clusters in any account, by the name that says they are meant for this (taintward:clusterRoles).',
    });
    grantWildcard(grantee, {
      action: 'secretsmanager:GetSecretValue',
      resources: secretArns,
      reason: 'Kubeconfigs, by the name that says they are meant for this (taintward:kubeconfigSecrets).',
    });
    for (const arn of [...secretArns, ...roles]) this.#granted[part].add(arn);
    if (this.#secretKeys.length === 0) return;
    // The keys may be used for requests of Secrets Manager only, and for no other data that they encrypt.
    const service = `secretsmanager.${stack.region}.amazonaws.com`;
    grant(grantee, ['kms:Decrypt'], this.#secretKeys, { StringEquals: { 'kms:ViaService': service } });
  }

  /** Gives `evict` the secrets and roles of all binds before, so that it can say why another cannot be used. */
  publish(grantee: Grantee): void {
    const CLUSTER_GRANTS = grantsJson(this.#granted);
    grantee.setEnvironment({ CLUSTER_GRANTS } satisfies ValuesOf<typeof clusterGrantsVariables>);
  }
}

function grantsJson({ relay, evict }: { readonly [P in Part]: Set<string> }): string {
  const both = relay.intersection(evict);
  const [ofRelay, ofEvict] = [[...relay.difference(both)], [...evict.difference(both)]];
  const json = JSON.stringify({ both: [...both], relay: ofRelay, evict: ofEvict } satisfies ClusterGrants);
  if (json.length <= MAX_GRANTS_CHARACTERS) return json;
  throw new ConfigError(
    `The secrets and roles of clusters (taintward:kubeconfigSecrets, taintward:clusterRoles, and those of relays and evict) have ${json.length} characters together, but evict has room for ${MAX_GRANTS_CHARACTERS}. Combine them to names that end with *.`,
  );
}
