import * as z from 'zod';
import { type ClusterName, clusterName } from '#shared/eviction/identity.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';

/**
 * Ours: leaves a node's name its 253 characters, and a moment, within the 1,024 bytes of an index key. Long enough
 * for the ARN of an EKS cluster, as `aws eks update-kubeconfig` names its contexts.
 */
const MAX_CLUSTER_NAME_CHARACTERS = 200;

/** Keys of the nodes of such a cluster would start as keys of other things do. */
const RESERVED = ['CLUSTER', 'LEASE', 'RATE'];

/** A name that a cluster can be registered under. */
export const clusterNameSchema: z.ZodType<ClusterName, string> = z
  .string()
  .max(MAX_CLUSTER_NAME_CHARACTERS)
  .regex(/^[!"$-~]+$/, 'must be of visible ASCII characters without #')
  .refine((name) => !RESERVED.includes(name), 'must be another: this one is used in the table itself')
  .transform(clusterName);

/** An agent's ID, which is part of the names of what it has in AWS. */
export const agentIdSchema: z.ZodType<string, string> = z
  .string()
  .regex(
    /^[a-z][a-z0-9-]{0,20}$/,
    'must be like edge-1: small letters, digits and -, 21 at most, a letter first',
  );

/** A part of the service that enters clusters. */
export type Part = 'relay' | 'evict';

/** The same for both parts that enter clusters, or to each its own. */
export type ByPart<T> = T | { readonly [P in Part]: T };

/** Whether each part has its own. */
export const isByPart = <T extends string | AssumedRole>(
  given: ByPart<T>,
): given is { readonly [P in Part]: T } => typeof given === 'object' && 'relay' in given;

/** What is meant for that part. */
export const ofPart = <T extends string | AssumedRole>(given: ByPart<T>, part: Part): T =>
  isByPart(given) ? given[part] : given;

/** By IAM: the endpoint and CA come from `DescribeCluster`, the token is a presigned STS call. */
export interface EksAccess {
  readonly kind: 'eks';
  /** Its name in EKS. */
  readonly clusterName: string;
  readonly region: string;
  /** Assumed before EKS is asked and the token is signed: the cluster is another account's, or wants this role. */
  readonly role?: ByPart<AssumedRole>;
}

export interface AssumedRole {
  readonly arn: string;
  /** What the role's trust policy wants to hear (`sts:ExternalId`). */
  readonly externalId?: string;
}

/** By a kubeconfig in AWS Secrets Manager. */
export interface KubeconfigSecretAccess {
  readonly kind: 'kubeconfig-secret';
  readonly secretArn: ByPart<string>;
  /** Absent: the kubeconfig's current one. */
  readonly context?: string;
}

/** By a kubeconfig file: only for processes that run where that file is. */
export interface LocalContextAccess {
  readonly kind: 'local-context';
  /** An absolute path; absent: where kubectl looks. */
  readonly kubeconfig?: string;
  readonly context: string;
}

/** By an agent that runs in it, relay and evictor in one: nobody enters it from outside. */
export interface AgentAccess {
  readonly kind: 'agent';
  /** Its ID. */
  readonly agent: string;
}

/** How a cluster's API server is reached, and as whom, by each part. Holds no secret. */
export type Access = EksAccess | KubeconfigSecretAccess | LocalContextAccess | AgentAccess;

/** A registration, or its access alone, that this release cannot read: a newer one wrote it, or a hand. Such a cluster cannot be reached. */
export interface UnreadableAccess {
  readonly kind: 'unreadable';
  /** What is wrong, as a clause. */
  readonly reason: string;
}

/** A cluster that the service manages. */
export interface RegisteredCluster<A = Access | UnreadableAccess> {
  readonly name: ClusterName;
  readonly access: A;
  /** Absent: what is stored says no moment. */
  readonly addedAt?: EpochMs;
}

/** All that is registered. */
export interface Registrations {
  /** By name. */
  readonly clusters: readonly RegisteredCluster[];
  /** What another hand put among them, of which nobody can tell which cluster it is: what it is, in a sentence each. */
  readonly strays: readonly string[];
}

/** Which clusters the service manages, changed at run time. Every method rejects with `StoreError`. */
export interface ClusterRegistry {
  /** All of them; may lag behind by a moment. One that cannot be read hides no other. */
  list(): Promise<Registrations>;
  /** One of them as it is now; `undefined`: there is none (any more). */
  get(name: ClusterName): Promise<RegisteredCluster | undefined>;
  /** `'exists'`: there is one of that name, and it stays as it is. */
  add(cluster: RegisteredCluster<Access>): Promise<'added' | 'exists'>;
  /** `'unknown'`: there was none of that name. */
  remove(name: ClusterName): Promise<'removed' | 'unknown'>;
}
