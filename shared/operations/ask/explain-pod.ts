import { defined } from '#shared/defined.ts';
import { type ClusterName, type NodeName, nodeName } from '#shared/eviction/identity.ts';
import { emptyPartition } from '#shared/eviction/records.ts';
import type { NodeCase } from '#shared/explain/forecast.ts';
import { headline } from '#shared/explain/headline.ts';
import { jobOutcome } from '#shared/explain/job.ts';
import { known, knownOr } from '#shared/explain/known.ts';
import type { NodeAnswer } from '#shared/explain/node.ts';
import { explainPod, type PodAnswer, type PodCase } from '#shared/explain/pod.ts';
import type { PodEnd } from '#shared/explain/scheduling.ts';
import { workloadText } from '#shared/explain/workload.ts';
import { projectPod } from '#shared/kubernetes/project.ts';
import { recentHistory } from '#shared/operations/look/history.ts';
import type { MatchOptions } from '#shared/taints/taint.ts';
import type { Clock } from '#shared/time/clock.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import type { ClusterObjects } from '../fleet/cluster-objects.ts';
import type { ContextFleet, Fleet } from '../fleet/fleet.ts';
import { relayStory } from '../look/blind.ts';
import { builtInOf } from '../look/built-in.ts';
import { pendingOf } from '../look/pending.ts';
import { budgetsIn } from './budgets.ts';
import type { WarnedNodeStory } from './explain-node.ts';
import { factOf } from './facts.ts';
import { traitsOf } from './job.ts';
import { liveNode } from './live-node.ts';
import { reach, rulesNow } from './reach.ts';
import { momentText } from './time-text.ts';
import { type OwnedPod, ownersOf } from './workload-finder.ts';

export interface PodQuestion {
  readonly cluster: ClusterName;
  readonly namespace: string;
  readonly name: string;
  readonly matching: MatchOptions;
}

/** An answer, with the outcome and its time as a sentence. */
export type PodStory = PodAnswer & Omit<WarnedNodeStory, keyof NodeAnswer>;

/**
 * Explains a pod from the service's state and all of the cluster that the caller may read; lists what could not be
 * read. Rejects with `ApiError` if only the cluster can be asked and doesn't respond.
 */
export async function askPod(
  fleet: Fleet | ContextFleet,
  { cluster, namespace, name, matching }: PodQuestion,
  { clock }: { readonly clock: Clock },
): Promise<PodStory> {
  return reach(fleet, cluster, async ({ ask, askFirst }) => {
    const found = await askFirst(({ objects }) => podNamed(objects, { namespace, name }));
    const there = knownOr(found, undefined);
    const pod = 'unknown' in found ? found : known(there?.pod);
    const on = there?.pod.node ?? (await scheduledOn(fleet, { cluster, namespace, name }, pod, clock));
    const none: NodeName = nodeName('');
    const [owners, node, budgets, builtIn, facts, { warnings, stalled, disconnection }] = await Promise.all([
      there ? ask(({ objects }) => ownersOf(objects, [there])) : known(undefined),
      on === undefined
        ? known<NodeCase['live']>({ taints: [] })
        : ask((live) => liveNode(live, on, fleet, clock)),
      ask(({ objects }) => budgetsIn(objects, namespace)),
      ask(({ objects }) => builtInOf(objects)),
      fleet.kind === 'context'
        ? undefined
        : serviceFacts(fleet, { cluster, namespace, name, matching }, on ?? none, clock.now()),
      relayStory(fleet, cluster, clock),
    ]);
    const service = facts && { ...facts, disconnection };
    const question: PodCase = {
      now: clock.now(),
      cluster,
      namespace,
      name,
      pod,
      node,
      budgets,
      builtIn,
      matching,
      workload: 'unknown' in owners ? owners : known(there && owners.value?.workloads.get(there.pod.uid)),
      ...(there ? { end: endOf(there, knownOr(owners, undefined)) } : {}),
      ...defined({ service, stalled }),
    };
    const answer = explainPod(question);
    return {
      headline: headline(answer, (at) => momentText(at, question.now)),
      ...answer,
      warnings,
      history: service ? knownOr(service.history, []) : [],
    };
  });
}

/** `undefined`: there is none. */
async function podNamed(
  objects: ClusterObjects,
  { namespace, name }: Pick<PodQuestion, 'namespace' | 'name'>,
): Promise<OwnedPod | undefined> {
  const path = `/api/v1/namespaces/${encodeURIComponent(namespace)}/pods/${encodeURIComponent(name)}`;
  const json = await objects.get(path);
  return json && { pod: projectPod(json), json };
}

/** `owners`: see {@link ownersOf}; absent: they can't be read. */
function endOf(
  { pod: { namespace, owner }, json }: OwnedPod,
  owners: Awaited<ReturnType<typeof ownersOf>> | undefined,
): PodEnd {
  const { finished, indexFailures } = traitsOf(json);
  if (finished) return { finished };
  if (owner?.kind !== 'Job') return {};
  const job = owners?.jobs.get(workloadText({ namespace, ...owner }));
  return owners && !job ? {} : { job: jobOutcome(job, [indexFailures]) };
}

async function scheduledOn(
  fleet: Fleet | ContextFleet,
  { cluster, namespace, name }: Omit<PodQuestion, 'matching'>,
  pod: PodCase['pod'],
  clock: Clock,
): Promise<NodeName | undefined> {
  if (fleet.kind === 'context' || !('unknown' in pod)) return undefined;
  const pending = await factOf(() => pendingOf(fleet.store, cluster, clock.now()));
  return knownOr(pending, []).find(({ record }) => record.namespace === namespace && record.name === name)
    ?.node;
}

async function serviceFacts(
  fleet: Fleet,
  { cluster, namespace, name, matching }: PodQuestion,
  node: NodeName,
  now: EpochMs,
) {
  const { store, history, leases } = fleet;
  const [rules, partition, past, stuck] = await Promise.all([
    rulesNow(fleet, cluster, matching),
    node === '' ? known(emptyPartition({ cluster, node })) : factOf(() => store.load({ cluster, node }, now)),
    factOf(() => recentHistory(history, { cluster, namespace, pod: name }, now)),
    factOf(async () => leases.stuck(cluster)),
  ]);
  return { rules, partition, history: past, stuck };
}
