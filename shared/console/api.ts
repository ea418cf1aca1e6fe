import * as z from 'zod';
import { type ClusterName, type NodeName, nodeName } from '#shared/eviction/identity.ts';
import type { TimedTaint } from '#shared/eviction/records.ts';
import type { StuckPod } from '#shared/eviction/stuck.ts';
import { NO_REASON } from '#shared/operations/acts/act.ts';
import type { EvictionPreview } from '#shared/operations/acts/preview.ts';
import type { WarnedNodeStory } from '#shared/operations/ask/explain-node.ts';
import type { PodStory } from '#shared/operations/ask/explain-pod.ts';
import { GROUPINGS, type groupTexts, type PendingGroup } from '#shared/operations/ask/pending-groups.ts';
import { type TolerationsAnswer, tolerationSchema } from '#shared/operations/ask/tolerations.ts';
import type { WhatIfAnswer } from '#shared/operations/ask/what-if.ts';
import type { Happening, Tainted } from '#shared/operations/look/history.ts';
import { PENDING_STATES, type PendingState } from '#shared/operations/look/pending-state.ts';
import type { FleetStatus } from '#shared/operations/look/status.ts';
import { EVICTION_EVENTS } from '#shared/state/history.ts';
import { clusterNameSchema } from '#shared/state/registry.ts';
import type { AuditEntry } from '#shared/state/rules-store.ts';
import { holdTarget } from '#shared/state/stored-rules.ts';
import { parsedJson } from '#shared/text/parsed-json.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';

/**
 * The console's API in JSON. Times are in epoch milliseconds, and paths are relative to the page.
 * - A question is a GET. The fields of its schema are its parameters.
 * - An act is a POST of JSON with the header {@link TOKEN_HEADER}.
 * - A failure is answered with {@link Failure} and a status from 400 on.
 *
 * The page imports only types of this file. The rest is for the server.
 */
export interface Api {
  'GET api/session': { readonly asks: Nothing; readonly answer: Session };
  'GET api/status': { readonly asks: Nothing; readonly answer: FleetStatus };
  'GET api/pending': { readonly asks: z.input<typeof pendingSchema>; readonly answer: PendingPage };
  /** Groups of pending evictions, by what the cluster showed up to a few seconds ago. */
  'GET api/groups': { readonly asks: z.input<typeof groupsSchema>; readonly answer: GroupsPage };
  'GET api/timeline': { readonly asks: z.input<typeof ofClusterSchema>; readonly answer: Timeline };
  'GET api/nodes': { readonly asks: z.input<typeof ofClusterSchema>; readonly answer: readonly NodeRow[] };
  'GET api/stuck': { readonly asks: z.input<typeof ofClusterSchema>; readonly answer: readonly StuckRow[] };
  'GET api/history': { readonly asks: z.input<typeof historySchema>; readonly answer: HistoryPage };
  /** The newest of the same entries in CSV, the oldest first. */
  'GET api/history.csv': { readonly asks: z.input<typeof historyCsvSchema>; readonly answer: string };
  /** The last thirty days. */
  'GET api/audit': { readonly asks: z.input<typeof ofClusterSchema>; readonly answer: readonly AuditEntry[] };
  /** A policy document as it would be applied now, with its faults or its effects. Changes nothing. */
  'POST api/policy': { readonly asks: z.input<typeof draftSchema>; readonly answer: PolicyDraft };
  'GET api/policy': { readonly asks: z.input<typeof inClusterSchema>; readonly answer: PolicyShown };
  'GET api/explain/pod': { readonly asks: z.input<typeof podSchema>; readonly answer: PodStory };
  'GET api/explain/node': { readonly asks: z.input<typeof nodeSchema>; readonly answer: WarnedNodeStory };
  'GET api/tolerations': { readonly asks: z.input<typeof listSchema>; readonly answer: TolerationsShown };
  'GET api/what-if': { readonly asks: z.input<typeof whatIfSchema>; readonly answer: WhatIfAnswer };
  /** Returns the effect of an act, to show before the act is done. */
  'POST api/preview': { readonly asks: z.input<typeof actSchema>; readonly answer: Preview };
  /** Does a previewed act. 409: the state has changed, so a new preview is needed. */
  'POST api/acts': { readonly asks: z.input<typeof confirmedSchema>; readonly answer: Done };
  /** For the simulated cluster only. 404: there is none. */
  'GET api/demo/nodes': { readonly asks: Nothing; readonly answer: readonly DemoNode[] };
  'POST api/demo/taint': { readonly asks: z.input<typeof demoTaintSchema>; readonly answer: Done };
  'POST api/demo/untaint': { readonly asks: z.input<typeof demoTaintSchema>; readonly answer: Done };
}

/** `GET api/live` sends these server-sent events, with this data as JSON: at most one of each per second. */
export interface LiveEvents {
  /** The server's clock. Sent first, and every few seconds: without it, the page counts the connection as lost. */
  readonly time: { readonly at: EpochMs };
  /** Sent when the page connects, and after every change. */
  readonly status: FleetStatus;
  /** The version of the pending evictions. Sent when the page connects, and after every change. */
  readonly pending: Pick<PendingPage, 'version' | 'at'>;
  /** Nothing can be read at present. The server retries. */
  readonly trouble: Failure;
  /** The session ended. No more events follow. */
  readonly end: { readonly reason: string };
}

/** The header that carries the session's token in an act. */
export const TOKEN_HEADER = 'x-taintward-token';

/** Maximum number of rows in a page. The page scrolls through them without further requests. */
export const MAX_ROWS = 20_000;
export const MAX_ENTRIES = 1_000;

type Nothing = Readonly<Record<never, never>>;

export interface Failure {
  /** One sentence that says how to proceed. */
  readonly error: string;
}

/** The error message of unexpected errors. Only the operator, who has the log, sees the details. */
export const FAILED = 'The console failed: its log says why.';

/** The session, its actor, and the fleet. */
export interface Session {
  /** The value of {@link TOKEN_HEADER} in acts. */
  readonly token: string;
  readonly actor: string;
  readonly version: string;
  /** Location of the fleet, for people: a state directory, a table, or the simulated cluster. */
  readonly place: string;
  /** The simulated cluster, whose nodes can be tainted on the page. Absent: there is none. */
  readonly demo?: { readonly cluster: ClusterName };
  /** The server's clock, which countdowns use. */
  readonly now: EpochMs;
}

/** A pending eviction. It is a tuple because there may be ten thousand. */
export type PendingRow = readonly [
  /** Unique in the fleet together with the cluster. */
  uid: string,
  cluster: ClusterName,
  node: NodeName,
  namespace: string,
  pod: string,
  dueAt: EpochMs,
  state: PendingState,
  /** Formatted as by kubectl, separated by commas. */
  taints: string,
  /** The reason why the eviction is held, for people. Usually empty. */
  note: string,
  /** IDs of the holds that apply, separated by commas. */
  holds: string,
  /** With an eviction that was blocked, rejected, rate limited, or failed: the time of the next try, if it has one. */
  nextTryAt?: EpochMs,
];

export interface PendingPage {
  /** Version of the pending evictions, which increases with each change. `GET api/live` sends it. */
  readonly version: number;
  readonly at: EpochMs;
  /** Number of rows that match, also beyond the limit. */
  readonly total: number;
  readonly rows: readonly PendingRow[];
}

export interface GroupsPage {
  readonly groups: readonly (PendingGroup & ReturnType<typeof groupTexts>)[];
  /** Facts that the cluster does not show, as sentences. */
  readonly unknown: readonly string[];
}

/** Future evictions by minute, from the minute that contains `from`. */
export interface Timeline {
  readonly at: EpochMs;
  /** Start of the first minute. */
  readonly from: EpochMs;
  /** Sixty consecutive minutes. Pods that are due, also those that are held, are in the first; failed ones are in none. */
  readonly minutes: readonly Readonly<Record<TimelineKind, number>>[];
  /** Number of pods that are due after the last minute. */
  readonly later: number;
}

/** Outcome under the current rules: the pod is evicted, is held, or is only recorded in observe mode. */
export type TimelineKind = 'evict' | 'held' | 'observed';

export interface NodeRow {
  readonly cluster: ClusterName;
  readonly node: NodeName;
  readonly taints: readonly TimedTaint[];
  readonly pending: number;
  /** Number of pending pods that are due and held. */
  readonly held: number;
  readonly nextAt?: EpochMs;
  /** Present: the Node object was deleted. */
  readonly deletedAt?: EpochMs;
  /** Present: evictions failed on this node. Contains the error and the time of the next attempt. */
  readonly retry?: { readonly error: string; readonly nextTryAt: EpochMs };
}

export interface StuckRow extends StuckPod {
  readonly cluster: ClusterName;
}

export interface HistoryPage {
  /** Newest first. Filtered by event, only events of pods. */
  readonly entries: readonly (Happening | Tainted)[];
  /** True if there are older entries. To get them, ask again with `to` set to the last entry's time. */
  readonly more: boolean;
}

export interface PolicyShown {
  readonly cluster: ClusterName;
  /** 0: no policy was applied, and the text is the default policy. */
  readonly revision: number;
  readonly text: string;
  /** Why operators can't change it. Absent: they can. */
  readonly refusal?: string;
  /** The JSON Schema of policy documents. */
  readonly schema: Readonly<Record<string, unknown>>;
}

export interface TolerationsShown extends TolerationsAnswer {
  /** Why the page makes no change, although a command may. */
  readonly refusal?: string;
}

export interface PolicyDraft extends Partial<Pick<Preview, 'effects' | 'settings'>> {
  readonly text: string;
  /** Absent: the text is not YAML, or has aliases. */
  readonly document?: unknown;
  /** One sentence each. */
  readonly faults: readonly string[];
}

export interface Preview extends Omit<EvictionPreview, 'goes'> {
  readonly confirm: string;
}

export interface Done {
  readonly message: string;
}

export interface DemoNode {
  readonly node: string;
  /** Formatted as by kubectl. */
  readonly taints: readonly string[];
  readonly pods: readonly {
    readonly namespace: string;
    readonly pod: string;
    readonly uid: string;
    /** `Pending`, `Running`, or `Terminating`, unless a user set another phase. */
    readonly status: string;
  }[];
}

const text = z.string().min(1).max(253);
const reason = z.string().trim().min(1, 'is required: it is recorded in the audit log').max(500);
/** In an emergency, evictions can be stopped without a reason. */
const stopReason = z
  .string()
  .trim()
  .max(500)
  .default('')
  .transform((text) => text || NO_REASON);
/** At most a year. */
const durationMs = z.int().min(1_000).max(31_536_000_000).optional();
const moment = z.coerce.number().int().nonnegative();
const node = text.transform(nodeName);

export const nothingSchema = z.strictObject({});
export const inClusterSchema = z.strictObject({ cluster: clusterNameSchema });
/** Absent: all clusters. */
export const ofClusterSchema = z.strictObject({ cluster: clusterNameSchema.optional() });

export const pendingSchema = z.strictObject({
  cluster: clusterNameSchema.optional(),
  state: z.enum(PENDING_STATES).optional(),
  limit: z.coerce.number().int().min(1).max(MAX_ROWS).default(500),
});
export type PendingQuery = z.output<typeof pendingSchema>;

export const groupsSchema = pendingSchema.omit({ limit: true }).extend({ by: z.enum(GROUPINGS) });
export type GroupsQuestion = z.output<typeof groupsSchema>;

export const historySchema = z.strictObject({
  cluster: clusterNameSchema.optional(),
  node: node.optional(),
  namespace: text.optional(),
  pod: text.optional(),
  event: z.enum(EVICTION_EVENTS).optional(),
  /** Default: a day ago. */
  from: moment.optional(),
  to: moment.optional(),
  limit: z.coerce.number().int().min(1).max(MAX_ENTRIES).default(200),
});
export type HistoryQuestion = z.output<typeof historySchema>;
export const historyCsvSchema = historySchema.omit({ limit: true });

export const podSchema = z.strictObject({ cluster: clusterNameSchema, namespace: text, pod: text });
export const nodeSchema = z.strictObject({ cluster: clusterNameSchema, node });

export const listSchema = z.strictObject({
  cluster: clusterNameSchema,
  namespace: text,
  kind: text,
  name: text,
  /** The new list, in JSON. Absent: nothing changes. */
  list: z.string().max(20_000).transform(parsedJson).pipe(z.array(tolerationSchema)).optional(),
  /** Present: the list is added to running pods. */
  pods: z.string().optional().transform(Boolean),
});

export const whatIfSchema = z.strictObject({
  cluster: clusterNameSchema,
  /** Formatted as by kubectl: `key=value:NoExecute`. */
  taint: z.string().min(1).max(700),
  /** A label selector. Absent: all nodes. */
  selector: z.string().max(2_000).optional(),
  /** Node names, separated by commas, instead of a selector. */
  nodes: z.string().max(20_000).optional(),
});

export const draftSchema = z.strictObject({
  cluster: clusterNameSchema,
  text: z.string(),
  /** With another value of a setting, as YAML; absent value: without it. */
  edit: z.strictObject({ setting: z.string(), value: z.string().optional() }).optional(),
  /** Counts the pods that entries of the policy select. */
  count: z.boolean().optional(),
});

export type WhatIfQuestion = z.output<typeof whatIfSchema>;

const cluster = clusterNameSchema;

const holding = z.strictObject({ cluster, reason });
/** A cluster has at most 100 holds. */
const others = <Each extends z.ZodType>(each: Each) => z.array(each).max(99).readonly().optional();

/** Acts of an operator. `stop` and `resume` without a cluster apply to all clusters. */
export const actSchema = z.discriminatedUnion('kind', [
  z.strictObject({ kind: z.literal('stop'), cluster: cluster.optional(), reason: stopReason, durationMs }),
  z
    .strictObject({ kind: z.literal('resume'), cluster: cluster.optional(), id: text.optional(), reason })
    .refine(({ cluster, id }) => id === undefined || cluster !== undefined, 'id needs a cluster'),
  holding.extend({ kind: z.literal('hold'), target: holdTarget, others: others(holdTarget), durationMs }),
  holding.extend({ kind: z.literal('release'), id: text, others: others(text) }),
  z.strictObject({ kind: z.literal('release-guard'), cluster, scope: text.optional(), reason }),
  z.strictObject({ kind: z.literal('apply-policy'), cluster, text: z.string(), reason }),
  z.strictObject({ kind: z.literal('retry'), cluster: cluster.optional(), node: node.optional(), reason }),
  holding.extend({
    kind: z.literal('change-tolerations'),
    change: listSchema.extend({ list: z.array(tolerationSchema), pods: z.boolean() }).omit({ cluster: true }),
  }),
]);
export type ConsoleAction = z.output<typeof actSchema>;
export type TolerationsChange = Extract<ConsoleAction, { readonly kind: 'change-tolerations' }>;
export type RulesChange = Exclude<ConsoleAction, TolerationsChange>;

export const confirmedSchema = z.strictObject({ act: actSchema, confirm: z.string().max(100) });

export const demoTaintSchema = z.strictObject({
  node,
  /** `key=value:Effect` or `key:Effect`. To untaint, `key` is sufficient. */
  taint: z.string().min(1).max(700),
});
