import * as z from 'zod';
import { type ClusterName, clusterName } from '#shared/eviction/identity.ts';
import { schemaOf } from '#shared/text/schema-of.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';

/**
 * Leaves room for a node's name (253 characters) and a time within an index key's 1,024 bytes. Enough for the ARN of an
 * EKS cluster, which `aws eks update-kubeconfig` uses as name.
 */
const MAX_CLUSTER_NAME_CHARACTERS = 200;

/** Reserved names: node keys of such a cluster would have the same prefix as keys of other items. */
const RESERVED = ['CLUSTER', 'LEASE', 'RATE'];

/** A valid name of a registered cluster. */
export const clusterNameSchema: z.ZodType<ClusterName, string> = z
  .string()
  .max(MAX_CLUSTER_NAME_CHARACTERS, `must have at most ${MAX_CLUSTER_NAME_CHARACTERS} characters`)
  .regex(/^[!"$-~]+$/, 'must be of visible ASCII characters without #')
  .refine((name) => !RESERVED.includes(name), 'must be another: this one is used in the table itself')
  .transform(clusterName);

/** An agent's ID, which is part of the names of its AWS resources. */
export const agentIdSchema: z.ZodType<string, string> = z
  .string()
  .regex(
    /^[a-z][a-z0-9-]{0,20}$/,
    'must be like edge-1: small letters, digits and -, 21 at most, a letter first',
  );

export type Part = 'relay' | 'evict';

/** One value for both parts that access clusters, or one for each. */
export type ByPart<T> = T | { readonly [P in Part]: T };

export const isByPart = <T extends string | AssumedRole>(
  given: ByPart<T>,
): given is { readonly [P in Part]: T } => typeof given === 'object' && 'relay' in given;

export const ofPart = <T extends string | AssumedRole>(given: ByPart<T>, part: Part): T =>
  isByPart(given) ? given[part] : given;

/** Returns the ARN of the role or secret that a part uses for a cluster. `undefined`: its own role in AWS, or none. */
export function identityOf(access: Access | UnreadableAccess, part: Part): string | undefined {
  if (access.kind === 'kubeconfig-secret') return ofPart(access.secretArn, part);
  return access.kind === 'eks' && access.role ? ofPart(access.role, part).arn : undefined;
}

/** Access by IAM. The endpoint and CA come from `DescribeCluster`; the token is a presigned STS call. */
export interface EksAccess {
  readonly kind: 'eks';
  readonly clusterName: string;
  readonly region: string;
  /** Assumed before requests to EKS and before signing the token, for another account. */
  readonly role?: ByPart<AssumedRole>;
}

export interface AssumedRole {
  readonly arn: string;
  /** The value that the role's trust policy requires (`sts:ExternalId`). */
  readonly externalId?: string;
}

/** Access by a kubeconfig in AWS Secrets Manager. */
export interface KubeconfigSecretAccess {
  readonly kind: 'kubeconfig-secret';
  readonly secretArn: ByPart<string>;
  /** Absent: the kubeconfig's current context. */
  readonly context?: string;
}

/** Access by a kubeconfig file, only for processes on the host of that file. */
export interface LocalContextAccess {
  readonly kind: 'local-context';
  /** An absolute path. Absent: kubectl's default. */
  readonly kubeconfig?: string;
  readonly context: string;
}

/** An agent in the cluster is relay and evictor in one; no process accesses the cluster from outside. */
export interface AgentAccess {
  readonly kind: 'agent';
  readonly agent: string;
}

/** Access to a cluster's API server, and the identity for it, for each part. Contains no secret. */
export type Access = EksAccess | KubeconfigSecretAccess | LocalContextAccess | AgentAccess;

export const roleArn = z
  .string()
  .regex(
    /^arn:[^:]+:iam::\d{12}:role\/.+$/,
    'must be the ARN of a role, like arn:aws:iam::ACCOUNT:role/NAME',
  );

export const secretArn = z
  .string()
  .regex(
    /^arn:[^:]+:secretsmanager:[^:]+:\d{12}:secret:.+$/,
    'must be the ARN of a secret, like arn:aws:secretsmanager:REGION:ACCOUNT:secret:NAME',
  );

interface AccessForm {
  /** Makes the schema of a mapping, which ignores or rejects unknown fields. */
  readonly object: typeof z.object;
  readonly roleArn: z.ZodType<string>;
  readonly secretArn: z.ZodType<string>;
}

/** Returns the schema of access in registrations and in documents. */
export function accessSchema({ object, ...arn }: AccessForm) {
  const text = z.string().min(1, 'must not be empty');
  /** One value for both parts, or one for each, which releases with only the first form report as unreadable. */
  const byPart = <T>(one: z.ZodType<T>) =>
    z.union(
      [one, object({ relay: one, evict: one })],
      'must be one value, or one for relay and one for evict',
    );
  return z
    .discriminatedUnion(
      'kind',
      [
        object({
          kind: z.literal('eks'),
          clusterName: text,
          region: text,
          role: byPart(object({ arn: arn.roleArn, externalId: text.exactOptional() })).exactOptional(),
        }),
        object({
          kind: z.literal('kubeconfig-secret'),
          secretArn: byPart(arn.secretArn),
          context: text.exactOptional(),
        }),
        object({ kind: z.literal('local-context'), kubeconfig: text.exactOptional(), context: text }),
        object({ kind: z.literal('agent'), agent: agentIdSchema }),
      ],
      {
        error: ({ code }) =>
          code === 'invalid_union' ? 'must be eks, kubeconfig-secret, local-context, or agent' : undefined,
      },
    )
    .apply(schemaOf<Access>());
}

/** A registration, or only its access, from a newer release or edited by hand. The cluster is unreachable. */
export interface UnreadableAccess {
  readonly kind: 'unreadable';
  readonly reason: string;
}

/** A cluster that the service manages. */
export interface RegisteredCluster<A = Access | UnreadableAccess> {
  readonly name: ClusterName;
  readonly access: A;
  /** Absent: the stored registration has no time. */
  readonly addedAt?: EpochMs;
}

export interface Registrations {
  /** By name. */
  readonly clusters: readonly RegisteredCluster[];
  /** Other items among the registrations, whose cluster cannot be determined: one sentence for each. */
  readonly strays: readonly string[];
}

/** The clusters that the service manages. They can change at run time. Every method rejects with `StoreError`. */
export interface ClusterRegistry {
  /** Resolves with all registrations, which may be briefly outdated. An unreadable one hides no other. */
  list(): Promise<Registrations>;
  /** Resolves with the current registration of a cluster. `undefined`: there is none, or no longer. */
  get(name: ClusterName): Promise<RegisteredCluster | undefined>;
  /** Adds a registration. `'exists'`: the name is already registered, and that registration stays unchanged. */
  add(cluster: RegisteredCluster<Access>): Promise<'added' | 'exists'>;
  /** Replaces a registration. `'unknown'`: the name is not registered, and stays so. */
  replace(cluster: RegisteredCluster<Access>): Promise<'replaced' | 'unknown'>;
  /** Removes a registration. `'unknown'`: the name was not registered. */
  remove(name: ClusterName): Promise<'removed' | 'unknown'>;
}
