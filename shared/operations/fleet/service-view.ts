import * as z from 'zod';
import { faultSchema } from '#shared/state/fault.ts';

const moment = z.int();

/** State of a cluster that only the process of the whole service has. */
const clusterViewSchema = z.object({
  /** `standby`: no relay holds its lease yet. `access-denied`: credentials or permissions are insufficient. */
  state: z.enum(['live', 'syncing', 'disconnected', 'standby', 'access-denied']),
  /** With `disconnected`: time of the disconnection. */
  since: moment.optional(),
  /** With `access-denied` and `disconnected`: the reason as a sentence, if known. */
  why: z.string().optional(),
  lastContactAt: moment.optional(),
  /** True while requests to its API server are suspended for some seconds, because it doesn't respond. */
  breakerOpen: z.boolean(),
  /** Faults of the cluster. Absent: none. */
  faults: z.array(faultSchema).readonly().optional(),
  nodes: z.int(),
  tainted: z.int(),
  /** Number of pods on tainted nodes. */
  pods: z.int(),
  /** All nodes, as the guard counts them: those that are down, and those with recent custom taints. */
  down: z.int(),
  customTaints: z.int(),
});

export const serviceViewSchema = z.object({
  version: z.string(),
  startedAt: moment,
  clusters: z.record(z.string(), clusterViewSchema),
  /** Number of messages in each queue, including those in flight and delayed. */
  queues: z.record(z.string(), z.int()),
});

/** To the loopback interface, with a key. The link is printed and opened in a browser. */
const CONSOLE_LINK = /^http:\/\/(?:127\.0\.0\.1|\[::1\]):\d{1,5}\/\?key=[\w-]+$/;

/** Answer to a request for a link to the console. Absent: the process serves none. */
export const consoleLinkSchema = z.object({
  link: z.string().regex(CONSOLE_LINK, 'is not a link to a console on this machine').optional(),
});

export type ConsoleLink = z.infer<typeof consoleLinkSchema>;
export type ServiceClusterView = z.infer<typeof clusterViewSchema>;
/** State that the process of the whole service reports to users who may read its state directory. */
export type ServiceView = z.infer<typeof serviceViewSchema>;
