import * as z from 'zod';
import type { ClusterUids } from '#shared/eviction/identity.ts';
import { uidsSchema } from '#shared/state/lease.ts';
import { clusterNameSchema, type RegisteredCluster } from '#shared/state/registry.ts';
import { schemaOf } from '#shared/text/schema-of.ts';

/** A question to `evict`, registered cluster or not: only it has the network and identity of later evictions. */
export interface AccessQuestion {
  readonly checkAccess: Pick<RegisteredCluster, 'name' | 'access'> & {
    /** The namespaces outside of which no pod is evicted; empty: pods of all namespaces may be. */
    readonly namespaces: readonly string[];
  };
}

export const accessQuestionSchema = z.object({
  checkAccess: z.object({
    name: clusterNameSchema,
    access: z.unknown(),
    namespaces: z.array(z.string()).prefault([]),
  }),
});

export type AccessAnswer =
  | {
      readonly reached: true;
      /** The permissions that it lacks, as text, of all that any policy or part could need. */
      readonly missing: readonly string[];
      /** What identifies the cluster, as far as it may read it. */
      readonly uids?: ClusterUids;
    }
  | {
      readonly reached: false;
      /** One sentence for the operator. */
      readonly reason: string;
    };

export const accessAnswerSchema = z
  .discriminatedUnion('reached', [
    z.object({ reached: z.literal(true), missing: z.array(z.string()), uids: uidsSchema.exactOptional() }),
    z.object({ reached: z.literal(false), reason: z.string() }),
  ])
  .apply(schemaOf<AccessAnswer>());
