import * as z from 'zod';

const cluster = z.string();
const nodes = z.array(z.int().nonnegative());

/** The commands of the synthetic API server, as JSON. */
export const command = z.discriminatedUnion('kind', [
  /** Replaces the taints of nodes, by their numbers, by one NoExecute taint. Answers with the time (`at`, epoch ms). */
  z.object({
    kind: z.literal('taint'),
    cluster,
    nodes,
    key: z.string().default('node.kubernetes.io/unreachable'),
  }),
  /** Removes all taints. */
  z.object({ kind: z.literal('untaint'), cluster, nodes }),
  /** Creates, deletes, or changes this many pods per second; 0 ends it. */
  z.object({ kind: z.literal('churn'), cluster, perSecond: z.number().nonnegative() }),
  /** Nodes report as fast as the slowest watch reads. */
  z.object({ kind: z.literal('storm'), cluster, on: z.boolean() }),
  /** Applies faults from now on, to new requests and open watches. */
  z.object({
    kind: z.literal('faults'),
    cluster,
    faults: z.object({
      refuse: z
        .object({ share: z.number(), status: z.int(), retryAfterSeconds: z.int().exactOptional() })
        .exactOptional(),
      speech: z.enum(['endless-line', 'silent']).exactOptional(),
      noStreamingLists: z.boolean().exactOptional(),
    }),
  }),
  /** Ends all watches. */
  z.object({ kind: z.literal('cut-watches'), cluster }),
  /** Ends all watches and forgets the changes that they miss, so that each resumes into 410. */
  z.object({ kind: z.literal('forget'), cluster }),
  /** Returns the number of requests by kind, since the last such command. */
  z.object({ kind: z.literal('counts'), cluster }),
]);

export type Command = z.output<typeof command>;
export type CommandInput = z.input<typeof command>;
