import * as z from 'zod';
import { type Access, clusterNameSchema, type RegisteredCluster } from '#shared/state/registry.ts';

/**
 * A question to `evict`, in an invocation of its own before a cluster is registered: can it work there? Only `evict`
 * can answer: it has the network and the identity with which evictions will be made.
 */
export interface AccessQuestion {
  readonly checkAccess: Pick<RegisteredCluster<Access>, 'name' | 'access'>;
}

/** The incoming question; the access is read like a stored one. */
export const accessQuestionSchema = z.object({
  checkAccess: z.object({ name: clusterNameSchema, access: z.unknown() }),
});

/** The answer of `evict`. */
export type AccessAnswer =
  | {
      readonly works: true;
      /** The cluster's Kubernetes version, like v1.34.2. */
      readonly version: string;
      /** Further permissions that `evict` should be granted, as a sentence; absent: none. */
      readonly hint?: string;
    }
  | {
      readonly works: false;
      /** One sentence for the operator. */
      readonly reason: string;
    };

/** The returned answer. */
export const accessAnswerSchema: z.ZodType<AccessAnswer> = z.discriminatedUnion('works', [
  z.object({ works: z.literal(true), version: z.string(), hint: z.string().exactOptional() }),
  z.object({ works: z.literal(false), reason: z.string() }),
]);
