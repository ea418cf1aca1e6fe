import * as z from 'zod';
import { type ClusterName, type NodeName, nodeName } from '#shared/eviction/identity.ts';
import type { Mode } from '#shared/eviction/policy.ts';
import type { TimedTaint } from '#shared/eviction/records.ts';
import type { NodeStory } from '#shared/operations/ask/explain-node.ts';
import type { PodStory } from '#shared/operations/ask/explain-pod.ts';
import type { WhatIfAnswer } from '#shared/operations/ask/what-if.ts';
import {
  type AuditOutput,
  type EntryOutput,
  EVENTS,
  type StuckOutput,
} from '#shared/operations/look/output-records.ts';
import { PENDING_STATES, type PendingState } from '#shared/operations/look/pending-state.ts';
import type { FleetStatus } from '#shared/operations/look/status.ts';
import { NO_REASON } from '#shared/state/operator.ts';
import { clusterNameSchema } from '#shared/state/registry.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';

/**
 * What the console's page asks and is answered, in JSON; times are epoch ms. Paths are relative to where the page is. A
 * question is a GET whose parameters are the fields of its schema; an act is a POST of JSON with the header
 * {@link TOKEN_HEADER}. What fails is answered by {@link Failure} and a status from 400 on. The page imports types of this
 * file only: what else is here is the server's.
 */
export interface Api {
  'GET api/session': { readonly asks: Nothing; readonly answer: Session };
  'GET api/status': { readonly asks: Nothing; readonly answer: FleetStatus };
  'GET api/pending': { readonly asks: z.input<typeof pendingSchema>; readonly answer: PendingPage };
  'GET api/timeline': { readonly asks: z.input<typeof timelineSchema>; readonly answer: Timeline };
  'GET api/nodes': { readonly asks: z.input<typeof ofClusterSchema>; readonly answer: readonly NodeRow[] };
  'GET api/stuck': { readonly asks: z.input<typeof ofClusterSchema>; readonly answer: readonly StuckRow[] };
  'GET api/history': { readonly asks: z.input<typeof historySchema>; readonly answer: HistoryPage };
  'GET api/audit': { readonly asks: z.input<typeof auditSchema>; readonly answer: readonly AuditOutput[] };
  'GET api/policy': { readonly asks: z.input<typeof inClusterSchema>; readonly answer: PolicyShown };
  'GET api/explain/pod': { readonly asks: z.input<typeof podSchema>; readonly answer: PodStory };
  'GET api/explain/node': { readonly asks: z.input<typeof nodeSchema>; readonly answer: NodeStory };
  'GET api/what-if': { readonly asks: z.input<typeof whatIfSchema>; readonly answer: WhatIfAnswer };
  /** What an act would do, to be shown before it is done. */
  'POST api/preview': { readonly asks: z.input<typeof actSchema>; readonly answer: Preview };
  /** Does an act that was shown. 409: something has changed since, so it is to be shown again. */
  'POST api/acts': { readonly asks: z.input<typeof confirmedSchema>; readonly answer: Done };
  /** Of the simulated cluster only: 404 where there is none. */
  'GET api/demo/nodes': { readonly asks: Nothing; readonly answer: readonly DemoNode[] };
  'POST api/demo/taint': { readonly asks: z.input<typeof demoTaintSchema>; readonly answer: Done };
  'POST api/demo/untaint': { readonly asks: z.input<typeof demoTaintSchema>; readonly answer: Done };
}

/** `GET api/live`: server-sent events, named so, each with this as its JSON. At most one of each in a second. */
export interface LiveEvents {
  /** First of all, and whenever it changed. */
  readonly status: FleetStatus;
  /** What changed of what is pending. */
  readonly pending: PendingDelta;
  /** Nothing can be read for now; it goes on by itself. */
  readonly trouble: Failure;
  /** The session is over: nothing more will come. */
  readonly end: { readonly reason: string };
}

/** The header in which an act carries the session's token. */
export const TOKEN_HEADER = 'x-taintward-token';

/** Rows of a page at most: all that a page needs to scroll through without asking. */
export const MAX_ROWS = 20_000;
/** Entries of history in an answer at most. */
export const MAX_ENTRIES = 1_000;

type Nothing = Readonly<Record<never, never>>;

export interface Failure {
  /** One sentence that says what to do. */
  readonly error: string;
}

/** What went wrong is nobody's business but the operator's, who has the log. */
export const FAILED = 'The console failed: its log says why.';

/** Who looks at what. */
export interface Session {
  /** What an act has to carry in {@link TOKEN_HEADER}. */
  readonly token: string;
  /** As whom acts are noted in the audit. */
  readonly actor: string;
  readonly version: string;
  /** Where the fleet is, for people: a state directory, a table, or the simulated cluster. */
  readonly place: string;
  /** The simulated cluster, whose nodes may be tainted by click; absent: there is none. */
  readonly demo?: { readonly cluster: ClusterName };
  /** The server's clock, by which countdowns run. */
  readonly now: EpochMs;
}

/** One pod that is to be evicted; a tuple, because there may be ten thousand. */
export type PendingRow = readonly [
  /** Unique in the fleet, together with the cluster. */
  uid: string,
  cluster: ClusterName,
  node: NodeName,
  namespace: string,
  pod: string,
  dueAt: EpochMs,
  state: PendingState,
  /** As kubectl prints them, by comma. */
  taints: string,
  /** What holds it, for people; mostly empty. */
  note: string,
  /** IDs of the holds among that, by comma. */
  holds: string,
];

export interface PendingPage {
  /** What `GET api/live` tells changes of: grows with each. */
  readonly version: number;
  readonly at: EpochMs;
  /** How many there are that were asked for, on all pages. */
  readonly total: number;
  readonly rows: readonly PendingRow[];
}

/** What makes of one version of all that is pending another; who has not `from` asks `GET api/pending` anew. */
export interface PendingDelta {
  readonly from: number;
  readonly version: number;
  readonly at: EpochMs;
  /** New, or other than before. */
  readonly put: readonly PendingRow[];
  /** By cluster and UID. */
  readonly gone: readonly (readonly [cluster: ClusterName, uid: string])[];
}

/** What goes when, from the minute that `from` is in on. */
export interface Timeline {
  readonly at: EpochMs;
  /** The beginning of the first minute. */
  readonly from: EpochMs;
  /** Sixty, one after the other; who is overdue is in the first, who is held in none. */
  readonly minutes: readonly Readonly<Record<TimelineKind, number>>[];
  /** What is due and held, or was given up: it has no moment. */
  readonly held: number;
  /** What goes after the last minute. */
  readonly later: number;
}

/** What happens to it then, as rules are now: it goes, something holds it, or it is only told. */
export type TimelineKind = 'evict' | 'held' | 'observed';

export interface NodeRow {
  readonly cluster: ClusterName;
  readonly node: NodeName;
  readonly taints: readonly TimedTaint[];
  readonly pending: number;
  /** Of the pending: they are due and held. */
  readonly held: number;
  readonly nextAt?: EpochMs;
  /** The Node object is gone. */
  readonly deletedAt?: EpochMs;
  /** Evictions failed here: what went wrong, and when they are tried again. */
  readonly retry?: { readonly error: string; readonly nextTryAt: EpochMs };
}

export interface StuckRow extends StuckOutput {
  readonly cluster: ClusterName;
}

export interface HistoryPage {
  /** The newest first. */
  readonly entries: readonly EntryOutput[];
  /** There are older ones: ask again with `to` of the last entry's moment. */
  readonly more: boolean;
}

export interface PolicyShown {
  readonly cluster: ClusterName;
  /** 0: none was applied, and the text is that of the default. */
  readonly revision: number;
  readonly text: string;
  readonly mode: Mode;
}

export interface Preview {
  /** What will happen, one sentence each. */
  readonly messages: readonly string[];
  /** How many pods go at once by it; 0: none. */
  readonly evicted: number;
  /** What `POST api/acts` has to carry as `confirm`. */
  readonly confirm: string;
}

export interface Done {
  /** What was done, as a sentence. */
  readonly message: string;
}

/** A node of the simulated cluster, tainted or not. */
export interface DemoNode {
  readonly node: string;
  /** As kubectl prints them. */
  readonly taints: readonly string[];
  readonly pods: readonly {
    readonly namespace: string;
    readonly pod: string;
    readonly uid: string;
    /** `Pending`, `Running` or `Terminating`, unless somebody set another phase. */
    readonly status: string;
  }[];
}

const text = z.string().min(1).max(253);
const reason = z.string().trim().min(1, 'is required: it is recorded in the audit log').max(500);
/** In an emergency, evictions are stopped without a reason. */
const stopReason = z
  .string()
  .trim()
  .max(500)
  .default('')
  .transform((text) => text || NO_REASON);
/** Up to a year. */
const durationMs = z.int().min(1_000).max(31_536_000_000).optional();
const moment = z.coerce.number().int().nonnegative();
const node = text.transform(nodeName);

export const nothingSchema = z.strictObject({});
export const inClusterSchema = z.strictObject({ cluster: clusterNameSchema });
/** Absent: all clusters. */
export const ofClusterSchema = z.strictObject({ cluster: clusterNameSchema.optional() });

export const pendingSchema = z.strictObject({
  cluster: clusterNameSchema.optional(),
  node: node.optional(),
  namespace: text.optional(),
  /** Part of a pod's, node's or namespace's name. */
  search: z.string().max(253).optional(),
  state: z.enum(PENDING_STATES).optional(),
  sort: z.enum(['due', 'pod', 'node', 'cluster', 'state']).default('due'),
  order: z.enum(['up', 'down']).default('up'),
  offset: z.coerce.number().int().nonnegative().default(0),
  limit: z.coerce.number().int().min(1).max(MAX_ROWS).default(500),
});
export type PendingQuery = z.output<typeof pendingSchema>;

export const timelineSchema = ofClusterSchema;

export const historySchema = z.strictObject({
  cluster: clusterNameSchema.optional(),
  node: node.optional(),
  namespace: text.optional(),
  pod: text.optional(),
  event: z.enum(Object.values(EVENTS)).optional(),
  /** Default: a day ago. */
  from: moment.optional(),
  to: moment.optional(),
  limit: z.coerce.number().int().min(1).max(MAX_ENTRIES).default(200),
});
export type HistoryAsked = z.output<typeof historySchema>;

export const auditSchema = z.strictObject({
  cluster: clusterNameSchema.optional(),
  /** Default: thirty days ago. */
  from: moment.optional(),
  to: moment.optional(),
});

export const podSchema = z.strictObject({ cluster: clusterNameSchema, namespace: text, pod: text });
export const nodeSchema = z.strictObject({ cluster: clusterNameSchema, node });

export const whatIfSchema = z.strictObject({
  cluster: clusterNameSchema,
  /** As kubectl writes it: `key=value:NoExecute`. */
  taint: z.string().min(1).max(700),
  /** A label selector, or absent: all nodes. */
  selector: z.string().max(2_000).optional(),
  /** Names by comma, in place of a selector. */
  nodes: z.string().max(20_000).optional(),
});

export type WhatIfAsked = z.output<typeof whatIfSchema>;

const target = z.discriminatedUnion('kind', [
  z.strictObject({ kind: z.literal('pod'), namespace: text, name: text }),
  z.strictObject({
    kind: z.literal('workload'),
    namespace: text,
    owner: z.strictObject({ kind: text, name: text }),
  }),
  z.strictObject({ kind: z.literal('node'), node }),
]);

const cluster = clusterNameSchema;

/** What an operator does. `stop` and `resume` without a cluster are of all clusters. */
export const actSchema = z.discriminatedUnion('kind', [
  z.strictObject({ kind: z.literal('stop'), cluster: cluster.optional(), reason: stopReason, durationMs }),
  z.strictObject({ kind: z.literal('resume'), cluster: cluster.optional(), reason }),
  z.strictObject({ kind: z.literal('pause'), cluster, reason, durationMs }),
  /** Takes a pause back. */
  z.strictObject({ kind: z.literal('unpause'), cluster, reason }),
  z.strictObject({ kind: z.literal('hold'), cluster, target, reason, durationMs }),
  z.strictObject({ kind: z.literal('release'), cluster, id: text, reason }),
  z.strictObject({ kind: z.literal('release-guard'), cluster, reason }),
  /** Has evictions tried again that were given up: of all clusters, of one, or of a node. */
  z.strictObject({ kind: z.literal('retry'), cluster: cluster.optional(), node: node.optional(), reason }),
]);
export type ConsoleAction = z.output<typeof actSchema>;

export const confirmedSchema = z.strictObject({ act: actSchema, confirm: z.string().max(100) });

export const demoTaintSchema = z.strictObject({
  node,
  /** `key=value:Effect` or `key:Effect`; to untaint, `key` alone does, too. */
  taint: z.string().min(1).max(700),
});
