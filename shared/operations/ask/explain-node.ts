import { defined } from '#shared/defined.ts';
import type { ClusterName, NodeName } from '#shared/eviction/identity.ts';
import type { EvictionRecord } from '#shared/eviction/records.ts';
import { nodeHeadline } from '#shared/explain/headline.ts';
import { known, knownOr } from '#shared/explain/known.ts';
import { explainNode, type NodeAnswer, type NodeQuestion } from '#shared/explain/node.ts';
import { recentHistory } from '#shared/operations/look/history.ts';
import type { HistoryEntry } from '#shared/state/history.ts';
import type { MatchOptions } from '#shared/taints/taint.ts';
import type { Clock } from '#shared/time/clock.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import { type ContextFleet, type Fleet, FleetError } from '../fleet/fleet.ts';
import { type Blindness, relayStory } from '../look/blind.ts';
import { builtInOf } from '../look/built-in.ts';
import { budgetsInAll } from './budgets.ts';
import { factOf } from './facts.ts';
import { liveNode } from './live-node.ts';
import { type Reached, reach, rulesNow } from './reach.ts';
import { momentText } from './time-text.ts';
import { podsOf } from './what-if.ts';
import { ownersOf } from './workload-finder.ts';

export interface NodeOfCluster {
  readonly cluster: ClusterName;
  readonly node: NodeName;
  readonly matching: MatchOptions;
  /** Reports whether a pod of the node is in question. Absent: all are. */
  readonly only?: (
    node: NodeName,
    pod: Pick<EvictionRecord, 'uid' | 'namespace' | 'name' | 'owner'>,
  ) => boolean;
}

/** An answer, with its summary as a sentence. */
export interface NodeStory extends NodeAnswer {
  readonly headline: string;
  /** Oldest first. */
  readonly history: readonly HistoryEntry[];
}

export type WarnedNodeStory = NodeStory & Pick<Blindness, 'warnings'>;

/**
 * Explains a node from the service's state and all of the cluster that the caller may read; lists what could not be
 * read. Rejects with `FleetError` if the node is unknown everywhere, and with `ApiError` if only the cluster can be
 * asked and doesn't respond.
 */
export async function askNode(
  fleet: Fleet | ContextFleet,
  question: NodeOfCluster,
  { clock }: { readonly clock: Clock },
): Promise<WarnedNodeStory> {
  return reach(fleet, question.cluster, async (reached) => {
    const facts = sharedFacts(reached, fleet, question.cluster, clock);
    const [story, { warnings }] = await Promise.all([
      nodeStory(reached, fleet, question, { clock, facts }),
      facts.relay,
      facts.builtIn,
    ]);
    return { ...story, warnings };
  });
}

/** Returns facts that all nodes of a cluster share. Await all of them, so that none rejects unnoticed. */
export const sharedFacts = (
  { ask }: Reached,
  fleet: Fleet | ContextFleet,
  cluster: ClusterName,
  clock: Clock,
) => ({
  relay: relayStory(fleet, cluster, clock),
  builtIn: ask(({ objects }) => builtInOf(objects)),
});

/** Does the same as {@link askNode}, in a cluster that is reached. */
export async function nodeStory(
  { ask, askFirst }: Reached,
  fleet: Fleet | ContextFleet,
  { cluster, node, matching, only = () => true }: NodeOfCluster,
  { clock, facts }: { readonly clock: Clock; readonly facts: ReturnType<typeof sharedFacts> },
): Promise<NodeStory> {
  const live = await askFirst((reached) => liveNode(reached, node, fleet, clock));
  const found = await ask(({ objects }) => podsOf(objects, [{ name: node }]));
  const there = knownOr(found, []).filter(({ pod }) => only(node, pod));
  const pods = 'unknown' in found ? found : known(there.map(({ pod }) => pod));
  const namespaces = [...new Set(there.map(({ pod }) => pod.namespace))];
  const [workloads, budgets, builtIn, stored, { stalled, disconnection }] = await Promise.all([
    there.length > 0
      ? ask(async ({ objects }) => (await ownersOf(objects, there)).workloads)
      : known(new Map()),
    ask(({ objects }) => budgetsInAll(objects, namespaces)),
    facts.builtIn,
    fleet.kind === 'context'
      ? undefined
      : serviceFacts(fleet, { cluster, node, matching, only }, clock.now()),
    facts.relay,
  ]);
  const service = stored && { ...stored, disconnection };
  const question: NodeQuestion = {
    now: clock.now(),
    cluster,
    node,
    live,
    pods,
    workloads,
    budgets,
    builtIn,
    matching,
    ...defined({ service, stalled }),
  };
  const answer = explainNode(question);
  const history = service ? knownOr(service.history, []) : [];
  const isStranger = answer.state === 'gone' && answer.pods.length === 0 && history.length === 0;
  if (isStranger) throw new FleetError(`Node "${node}" not found in cluster "${cluster}". Check its name.`);
  return {
    headline: nodeHeadline(answer, (at) => momentText(at, question.now)),
    ...answer,
    history,
  };
}

async function serviceFacts(
  fleet: Fleet,
  { cluster, node, matching, only = () => true }: NodeOfCluster,
  now: EpochMs,
) {
  const [rules, partition, past] = await Promise.all([
    rulesNow(fleet, cluster, matching),
    factOf(async () => {
      const { scheduled, ...stored } = await fleet.store.load({ cluster, node }, now);
      return { ...stored, scheduled: new Map([...scheduled].filter(([, record]) => only(node, record))) };
    }),
    factOf(() => recentHistory(fleet.history, { cluster, node }, now)),
  ]);
  return { rules, partition, history: past };
}
