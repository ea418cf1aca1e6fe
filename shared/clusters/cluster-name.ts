import * as z from 'zod';
import { type ClusterName, clusterName } from '#shared/eviction/identity.ts';

/**
 * Ours: leaves a node's name its 253 characters, and a moment, within the 1,024 bytes of an index key. Long enough
 * for the ARN of an EKS cluster, as `aws eks update-kubeconfig` names its contexts.
 */
const MAX_CLUSTER_NAME_CHARACTERS = 200;

/** A name that a cluster can be registered under. */
export const clusterNameSchema: z.ZodType<ClusterName, string> = z
  .string()
  .max(MAX_CLUSTER_NAME_CHARACTERS)
  .regex(/^[!"$-~]+$/, 'must be of visible ASCII characters without #')
  .transform(clusterName);
