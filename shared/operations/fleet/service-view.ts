import * as z from 'zod';
import { faultSchema } from '#shared/state/fault.ts';

const moment = z.int();

/** What a process that runs the whole service knows of a cluster, and nobody else. */
const clusterViewSchema = z.object({
  /** `standby`: nobody speaks for it yet; `access-denied`: its credentials, or their rights, are not enough. */
  state: z.enum(['live', 'syncing', 'disconnected', 'standby', 'access-denied']),
  /** With `disconnected`: since when nothing is heard. */
  since: moment.optional(),
  /** With `access-denied` and `disconnected`: a sentence, where one is known. */
  why: z.string().optional(),
  /** The last sign of life. */
  heardAt: moment.optional(),
  /** Whether its API server is not asked for some seconds, because it does not answer. */
  breakerOpen: z.boolean(),
  /** What is wrong with it; absent: nothing. */
  faults: z.array(faultSchema).readonly().optional(),
  nodes: z.int(),
  tainted: z.int(),
  /** Of tainted nodes. */
  pods: z.int(),
  /** Of all nodes, as the guard counts: those that are down, and those that people tainted lately. */
  down: z.int(),
  taintedByPeople: z.int(),
});

export const serviceViewSchema = z.object({
  version: z.string(),
  startedAt: moment,
  clusters: z.record(z.string(), clusterViewSchema),
  /** How many messages each queue holds, those in flight and delayed included. */
  queues: z.record(z.string(), z.int()),
});

/** A link as a console makes it: to the loopback interface, with a key. It is shown, and opened in a browser. */
const CONSOLE_LINK = /^http:\/\/(?:127\.0\.0\.1|\[::1\]):\d{1,5}\/\?key=[\w-]+$/;

/** How such a process answers who asks for a link to its console; absent: it serves none. */
export const consoleLinkSchema = z.object({
  link: z.string().regex(CONSOLE_LINK, 'is not a link to a console on this machine').optional(),
});

export type ConsoleLink = z.infer<typeof consoleLinkSchema>;
export type ServiceClusterView = z.infer<typeof clusterViewSchema>;
/** What a process that runs the whole service says of itself to who may read its state directory. */
export type ServiceView = z.infer<typeof serviceViewSchema>;
