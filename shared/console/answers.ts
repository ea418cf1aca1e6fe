import type * as z from 'zod';
import { defined } from '#shared/defined.ts';
import type { ClusterName } from '#shared/eviction/identity.ts';
import { DEFAULT_POLICY } from '#shared/eviction/policy.ts';
import { preflight } from '#shared/kubernetes/permissions.ts';
import { TAKEOVER_GROUP } from '#shared/kubernetes/takeover.ts';
import { ownedText } from '#shared/operations/acts/decide.ts';
import type { WarnedNodeStory } from '#shared/operations/ask/explain-node.ts';
import type { PodStory } from '#shared/operations/ask/explain-pod.ts';
import type { WhatIfAnswer } from '#shared/operations/ask/what-if.ts';
import type { Fleet } from '#shared/operations/fleet/fleet.ts';
import { type LiveCluster, withCluster } from '#shared/operations/fleet/live-cluster.ts';
import { historyCsv } from '#shared/operations/look/history-text.ts';
import { statusOf } from '#shared/operations/look/status.ts';
import { EVICTION_RULES } from '#shared/state/objects/eviction-rules.ts';
import { policyJsonSchema, policyText } from '#shared/state/policy-document.ts';
import { errorMessage } from '#shared/text/error-message.ts';
import { cached, once } from '#shared/time/cache.ts';
import type { Clock } from '#shared/time/clock.ts';
import { VERSION } from '#shared/version.ts';
import { draftOf, perform, preview } from './acts.ts';
import {
  type Api,
  actSchema,
  confirmedSchema,
  type DemoNode,
  type Done,
  demoTaintSchema,
  draftSchema,
  groupsSchema,
  historyCsvSchema,
  historySchema,
  inClusterSchema,
  listSchema,
  MAX_ROWS,
  nodeSchema,
  nothingSchema,
  ofClusterSchema,
  type PolicyShown,
  type Preview,
  pendingSchema,
  podSchema,
  type TolerationsChange,
  type TolerationsShown,
  whatIfSchema,
} from './api.ts';
import type { FleetView } from './fleet-view.ts';
import { groupsIn } from './groups.ts';
import { historyPage } from './history.ts';
import { nodesOf, pendingPage, stuckOf, timelineOf } from './overview.ts';

const DAY_MS = 24 * 3_600_000;
/** A page asks for the policy each second. */
const REFUSAL_MS = 30_000;
/** The age of the oldest audit entries that are shown. */
export const AUDIT_MS = 30 * DAY_MS;

/** The simulated cluster, as the console changes it. Changes throw errors with one clear sentence. */
export interface DemoCluster {
  readonly cluster: ClusterName;
  nodes(): readonly DemoNode[];
  taint(node: string, taint: string): void;
  untaint(node: string, taint: string): void;
}

export interface TolerationQuestions {
  tolerations(asks: z.output<typeof listSchema>): Promise<TolerationsShown>;
  previewTolerations(act: TolerationsChange): Promise<Preview>;
  changeTolerations(act: TolerationsChange, confirm: string): Promise<Done>;
}

export interface Questions extends TolerationQuestions {
  explainPod(asks: z.output<typeof podSchema>): Promise<PodStory>;
  explainNode(asks: z.output<typeof nodeSchema>): Promise<WarnedNodeStory>;
  whatIf(asks: z.output<typeof whatIfSchema>): Promise<WhatIfAnswer>;
}

export interface AnswersDeps {
  readonly fleet: Fleet;
  readonly view: FleetView;
  readonly questions: Questions;
  readonly demo?: DemoCluster | undefined;
  readonly clock: Clock;
}

/** The object does not exist here. The message names it. */
export class NothingThereError extends Error {
  override readonly name = 'NothingThereError';
}

/** For each route, the schema of its request and the function that answers it. */
export type Answers = {
  readonly [Route in keyof Api]: {
    readonly schema: z.ZodType;
    /** `token`: the session's. Empty: there is no session. */
    answer(asks: unknown, token: string): Promise<Api[Route]['answer']>;
  };
};

/** Each answer rejects with errors whose messages are for the caller. */
export function answersOf(deps: AnswersDeps): Answers {
  const { fleet, view, questions, demo, clock } = deps;
  const whoAsks = once(async () => (await fleet.operator()).actor);
  const acts = { fleet, view };
  const refusal = cached(REFUSAL_MS, refusalIn(fleet), clock);
  return {
    'GET api/session': route(nothingSchema, async (_, token) => ({
      token,
      actor: await whoAsks(),
      version: VERSION,
      place: fleet.where,
      ...(demo ? { demo: { cluster: demo.cluster } } : {}),
      now: clock.now(),
    })),
    'GET api/status': route(nothingSchema, async () => statusOf(await view.read())),
    'GET api/pending': route(pendingSchema, async (query) => pendingPage(await view.read(), query)),
    'GET api/groups': route(groupsSchema, groupsIn(fleet, view, clock)),
    'GET api/timeline': route(ofClusterSchema, async ({ cluster }) => timelineOf(await view.read(), cluster)),
    'GET api/nodes': route(ofClusterSchema, async ({ cluster }) => nodesOf(await view.read(), cluster)),
    'GET api/stuck': route(ofClusterSchema, async ({ cluster }) => stuckOf(await view.read(), cluster)),
    'GET api/history': route(historySchema, (query) => historyPage(fleet, query, clock.now())),
    'GET api/history.csv': route(historyCsvSchema, async (query) => {
      const { entries } = await historyPage(fleet, { ...query, limit: MAX_ROWS }, clock.now());
      return historyCsv(entries.toReversed());
    }),
    'GET api/audit': route(ofClusterSchema, ({ cluster }) => {
      const now = clock.now();
      return fleet.rulesStore.audit({ ...defined({ cluster }), from: now - AUDIT_MS, to: now + 1 });
    }),
    'GET api/policy': route(inClusterSchema, ({ cluster }) => policyOf(fleet, cluster, refusal)),
    'POST api/policy': route(draftSchema, (asks) => draftOf(asks, acts)),
    'GET api/explain/pod': route(podSchema, (asks) => questions.explainPod(asks)),
    'GET api/explain/node': route(nodeSchema, (asks) => questions.explainNode(asks)),
    'GET api/tolerations': route(listSchema, (asks) => questions.tolerations(asks)),
    'GET api/what-if': route(whatIfSchema, (asks) => questions.whatIf(asks)),
    'POST api/preview': route(actSchema, (act) =>
      act.kind === 'change-tolerations' ? questions.previewTolerations(act) : preview(act, acts),
    ),
    'POST api/acts': route(confirmedSchema, ({ act, confirm }) =>
      act.kind === 'change-tolerations'
        ? questions.changeTolerations(act, confirm)
        : perform(act, confirm, acts),
    ),
    'GET api/demo/nodes': route(nothingSchema, async () => simulated(demo).nodes()),
    'POST api/demo/taint': route(demoTaintSchema, async ({ node, taint }) => {
      simulated(demo).taint(node, taint);
      return { message: `Tainted node ${node} with ${taint}.` };
    }),
    'POST api/demo/untaint': route(demoTaintSchema, async ({ node, taint }) => {
      simulated(demo).untaint(node, taint);
      return { message: `Removed taint ${taint} from node ${node}.` };
    }),
  };
}

/** `ApiServer` validates the request with the schema first. */
const route = <Schema extends z.ZodType, Answer>(
  schema: Schema,
  answer: (asks: z.output<Schema>, token: string) => Promise<Answer>,
) => ({ schema, answer: (asks: unknown, token: string) => answer(asks as z.output<Schema>, token) });

function simulated(demo: DemoCluster | undefined): DemoCluster {
  if (demo) return demo;
  throw new NothingThereError(
    'There is no simulated cluster here: nodes of real ones are tainted by kubectl.',
  );
}

/** Why the operator's credentials can't change rules that are kept in the cluster. Elsewhere, only the attempt shows it. */
const refusalIn = (fleet: Fleet) => async (cluster: ClusterName) => {
  if (!fleet.serviceAccount) return undefined;
  const { namespace } = fleet.serviceAccount;
  const right = { verb: 'update', group: TAKEOVER_GROUP, resource: EVICTION_RULES, namespace } as const;
  const review = ({ api }: LiveCluster) => preflight(api, [right]).then(() => undefined, errorMessage);
  return withCluster(fleet, cluster, review);
};

async function policyOf(
  fleet: Fleet,
  cluster: ClusterName,
  refusal: ReturnType<typeof refusalIn>,
): Promise<PolicyShown> {
  if (!(await fleet.manages(cluster))) throw new NothingThereError(`There is no cluster ${cluster}.`);
  const { policy } = (await fleet.rulesStore.read(cluster)).orders;
  return {
    cluster,
    revision: policy?.revision ?? 0,
    text: policy?.text ?? policyText(DEFAULT_POLICY),
    schema: { ...policyJsonSchema() },
    ...defined({ refusal: policy?.owner ? ownedText(cluster, policy.owner) : await refusal(cluster) }),
  };
}
