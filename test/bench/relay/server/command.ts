import * as z from 'zod';

const cluster = z.string();
const nodes = z.array(z.int().nonnegative());

/** What the synthetic API server can be told, as JSON. */
export const command = z.discriminatedUnion('kind', [
  /** Writes a NoExecute taint on nodes, by their numbers, and no other. Answers when (`at`, epoch ms). */
  z.object({
    kind: z.literal('taint'),
    cluster,
    nodes,
    key: z.string().default('node.kubernetes.io/unreachable'),
  }),
  /** Takes all taints off. */
  z.object({ kind: z.literal('untaint'), cluster, nodes }),
  /** So many pods a second come, go or change; 0 ends it. */
  z.object({ kind: z.literal('churn'), cluster, perSecond: z.number().nonnegative() }),
  /** Nodes report as fast as the slowest watch reads. */
  z.object({ kind: z.literal('storm'), cluster, on: z.boolean() }),
  /** From now on, for new requests and open watches. */
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
  /** Ends all watches and forgets what they missed, so that each resumes into 410. */
  z.object({ kind: z.literal('forget'), cluster }),
  /** Requests by what they asked for, since this was last asked. */
  z.object({ kind: z.literal('counts'), cluster }),
]);

export type Command = z.output<typeof command>;
export type CommandInput = z.input<typeof command>;
