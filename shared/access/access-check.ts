import * as z from 'zod';
import { type Access, clusterNameSchema, type RegisteredCluster } from '#shared/state/registry.ts';

/**
 * What `evict` is asked by an invocation of its own, before a cluster is registered: whether it could work there. It alone can
 * say: it has the network and the identity that evictions will be done from and by.
 */
export interface AccessQuestion {
  readonly checkAccess: Pick<RegisteredCluster<Access>, 'name' | 'access'>;
}

/** The question as it comes in; the access is read as one that is stored. */
export const accessQuestionSchema = z.object({
  checkAccess: z.object({ name: clusterNameSchema, access: z.unknown() }),
});

/** What it answers. */
export type AccessAnswer =
  | {
      readonly works: true;
      /** Of Kubernetes there, like v1.34.2. */
      readonly version: string;
      /** What more it should be granted, as a sentence; absent: nothing. */
      readonly hint?: string;
    }
  | {
      readonly works: false;
      /** One sentence for the operator. */
      readonly reason: string;
    };

/** The answer as it comes back. */
export const accessAnswerSchema: z.ZodType<AccessAnswer> = z.discriminatedUnion('works', [
  z.object({ works: z.literal(true), version: z.string(), hint: z.string().exactOptional() }),
  z.object({ works: z.literal(false), reason: z.string() }),
]);
