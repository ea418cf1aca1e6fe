import pMap from 'p-map';
import { defined } from '#shared/defined.ts';
import { NodeTally } from '#shared/engine/watch/node-tally.ts';
import type { SeenTaint } from '#shared/eviction/facts.ts';
import { asksLease, matchesLabels } from '#shared/eviction/gate.ts';
import type { ClusterName, NodeName } from '#shared/eviction/identity.ts';
import type { ReleasedTrip, Rules } from '#shared/eviction/policy.ts';
import { emptyPartition, type Partition } from '#shared/eviction/records.ts';
import type { LabelSelector } from '#shared/eviction/selectors.ts';
import type { Budget } from '#shared/explain/budgets.ts';
import { enforcedRules } from '#shared/explain/governing.ts';
import {
  type Answer,
  type Findings,
  forecastsOf,
  type NodeToTaint,
  type PodThere,
  podsToAsk,
  type Situation,
  type WhatIf,
  whatIf,
  withTaint,
} from '#shared/explain/what-if.ts';
import type { LiveNode } from '#shared/kubernetes/api.ts';
import { ApiError } from '#shared/kubernetes/http/api-error.ts';
import { fieldsOf, itemsOf, textOf } from '#shared/kubernetes/http/api-json.ts';
import { blockedBy, NAMESPACE_TERMINATING } from '#shared/kubernetes/http/eviction-refusal.ts';
import { projectNode, projectPod } from '#shared/kubernetes/project.ts';
import { rulesOf, type StoredRules } from '#shared/state/rules-store.ts';
import { type MatchOptions, NODE_UNREACHABLE, type Taint, taintText } from '#shared/taints/taint.ts';
import { evictingTaints } from '#shared/taints/virtual.ts';
import type { Clock } from '#shared/time/clock.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import type { ClusterObjects } from '../fleet/cluster-objects.ts';
import { type ContextFleet, type Fleet, FleetError } from '../fleet/fleet.ts';
import { withCluster } from '../fleet/live-cluster.ts';
import { budgetsIn } from './budgets.ts';
import { factOf } from './facts.ts';
import { traitsOf } from './job.ts';
import { type OwnedPod, WorkloadFinder } from './workload-finder.ts';

/** Concurrent calls of each kind. */
const PARALLEL_CALLS = 8;

export type NodeChoice = { readonly names: readonly string[] } | { readonly labels: LabelSelector };

/** A hypothetical taint on nodes of a cluster. */
export interface WhatIfQuestion {
  readonly cluster: ClusterName;
  readonly taint: Taint;
  readonly nodes: NodeChoice;
  readonly matching: MatchOptions;
}

/** The preview, and its limitations. */
export interface WhatIfAnswer extends WhatIf {
  readonly cluster: ClusterName;
  /** `default`: only the API server is known, so the preview uses the default policy in enforce mode. */
  readonly policy: 'applied' | 'default';
  /** Data that could not be read, with the consequence, one sentence each. */
  readonly unknown: readonly string[];
}

/**
 * Previews a taint on nodes, with the caller's permissions; changes nothing. The Eviction API is asked by a dry run for
 * each evicted pod with a budget. Rejects with `FleetError` if no such node exists, and with `ApiError` if nodes or
 * pods cannot be read.
 */
export async function askWhatIf(
  fleet: Fleet | ContextFleet,
  { cluster, taint, nodes: choice, matching }: WhatIfQuestion,
  { clock, progress }: { readonly clock: Clock; readonly progress: (text: string) => void },
): Promise<WhatIfAnswer> {
  return withCluster(fleet, cluster, async ({ objects }) => {
    const storedRules = fleet.kind === 'context' ? undefined : await fleet.rulesStore.read(cluster);
    const rules = storedRules ? rulesOf(storedRules, matching) : enforcedRules(matching);
    mustEvict(taint, rules);
    const unknown: string[] = [];
    if (taint.key === NODE_UNREACHABLE && asksLease(rules)) {
      unknown.push(
        'This preview assumes that these nodes do not renew their Leases. Pods stay on nodes that do',
      );
    }
    progress('reading nodes');
    const all = await nodesOf(objects);
    const chosen = chosenNodes(all, choice);
    progress(`reading the pods of ${chosen.length} nodes`);
    const at = clock.now();
    const [partitions, pods] = await Promise.all([
      partitionsOf(fleet, cluster, chosen, at),
      podsOf(objects, chosen),
    ]);
    const situation: Situation = {
      now: at,
      taint,
      rules,
      nodes: chosen.map((node, index) => toTaint(node, partitions[index])),
      pods: pods.map(({ pod }) => pod),
      ...guardWith(all, chosen, { taint, rules, now: at }, storedRules?.guard),
    };
    const forecasts = forecastsOf(situation);
    progress('reading workloads and budgets');
    const finder = new WorkloadFinder(objects);
    const [workloads, budgets] = await Promise.all([
      finder.ofEach(pods),
      budgetsOf(objects, [...new Set(situation.pods.map(({ namespace }) => namespace))], unknown),
    ]);
    unknown.push(...finder.unknown);
    const candidates = podsToAsk(situation, forecasts, budgets);
    progress(`asking the Eviction API for ${candidates.length} pods`);
    const findings: Findings = {
      workloads,
      replicas: finder.replicas,
      jobs: finder.jobs,
      budgets,
      answers: await answersFor(objects, candidates, unknown),
    };
    const policy = fleet.kind === 'context' ? 'default' : 'applied';
    return { cluster, policy, unknown, ...whatIf(situation, forecasts, findings) };
  });
}

/** Throws `FleetError` if the taint would evict no pods on any node. */
function mustEvict(taint: Taint, { policy }: Rules): void {
  if (evictingTaints([taint], policy.treatAsNoExecute).length > 0) return;
  throw new FleetError(
    `Taint ${taintText(taint)} evicts no pods. Specify the effect NoExecute, or a taint of treatAsNoExecute in the policy.`,
  );
}

interface NodeHere {
  readonly node: LiveNode;
  readonly labels: Readonly<Record<string, string>>;
}

async function nodesOf(objects: ClusterObjects): Promise<readonly NodeHere[]> {
  const nodes: NodeHere[] = [];
  for await (const json of objects.list('/api/v1/nodes')) {
    const labels = Object.entries(fieldsOf(fieldsOf(json['metadata'])['labels']));
    nodes.push({
      node: projectNode(json),
      labels: Object.fromEntries(labels.map(([key, value]) => [key, textOf(value)])),
    });
  }
  return nodes;
}

/** Returns the chosen nodes. Throws `FleetError` if a named node doesn't exist, or if no node matches. */
function chosenNodes(all: readonly NodeHere[], choice: NodeChoice): readonly LiveNode[] {
  if ('names' in choice) {
    const byName = new Map(all.map(({ node }) => [String(node.name), node]));
    return [...new Set(choice.names)].map((name) => {
      const node = byName.get(name);
      if (node) return node;
      throw new FleetError(
        `Node "${name}" not found. Specify node names as in kubectl get nodes, or labels such as team=web.`,
      );
    });
  }
  const chosen = all.filter(({ labels }) => matchesLabels(choice.labels, labels)).map(({ node }) => node);
  if (chosen.length > 0) return chosen;
  throw new FleetError('No node matches these labels. Run "kubectl get nodes --show-labels".');
}

interface PodHere extends OwnedPod {
  readonly pod: PodThere;
}

/** Returns the pods of nodes. Rejects with `ApiError`. */
export async function podsOf(
  objects: ClusterObjects,
  nodes: readonly Pick<LiveNode, 'name'>[],
): Promise<readonly PodHere[]> {
  const ofEach = await pMap(
    nodes,
    async ({ name }) => {
      const pods: PodHere[] = [];
      const query = { fieldSelector: `spec.nodeName=${name}` };
      for await (const json of objects.list('/api/v1/pods', query)) {
        const ready = isReady(json);
        pods.push({
          pod: { ...projectPod(json), ...traitsOf(json), node: name, ready },
          json: ownersOf(json),
        });
      }
      return pods;
    },
    { concurrency: PARALLEL_CALLS },
  );
  return ofEach.flat();
}

/** Returns only the fields that identify a pod's owners, to save memory. */
const ownersOf = (json: Readonly<Record<string, unknown>>): object => {
  const { namespace, ownerReferences } = fieldsOf(json['metadata']);
  return { metadata: { namespace, ownerReferences } };
};

const isReady = (json: Readonly<Record<string, unknown>>): boolean =>
  itemsOf(fieldsOf(json['status'])['conditions'])
    .map(fieldsOf)
    .some(({ type, status }) => type === 'Ready' && status === 'True');

/** A fleet of a context has none. */
async function partitionsOf(
  fleet: Fleet | ContextFleet,
  cluster: ClusterName,
  nodes: readonly LiveNode[],
  at: EpochMs,
): Promise<readonly Partition[]> {
  const stored = new Set<NodeName>();
  if (fleet.kind !== 'context')
    for await (const { node } of fleet.store.taintedNodes(cluster)) stored.add(node);
  return pMap(
    nodes,
    async ({ name: node }): Promise<Partition> => {
      const ref = { cluster, node };
      return fleet.kind !== 'context' && stored.has(node) ? fleet.store.load(ref, at) : emptyPartition(ref);
    },
    { concurrency: PARALLEL_CALLS },
  );
}

function toTaint({ taints, zone }: LiveNode, partition: Partition | undefined): NodeToTaint {
  if (!partition) throw new Error('each node has a partition');
  return { taints, partition, ...defined({ zone }) };
}

/** Nodes are counted as in the relay. */
function guardWith(
  all: readonly NodeHere[],
  chosen: readonly LiveNode[],
  { taint, rules: { policy }, now }: Pick<Situation, 'taint' | 'rules' | 'now'>,
  { trips, released = [] }: Pick<StoredRules['guard'], 'trips' | 'released'> = { trips: [] },
): Pick<Situation, 'counts' | 'released'> {
  const tally = new NodeTally();
  const seen = ({ taints }: Pick<LiveNode, 'taints'>) =>
    evictingTaints(taints, policy.treatAsNoExecute).map(
      (each): SeenTaint => ({ ...each, known: 'preexisting', seenAt: now }),
    );
  for (const { node } of all) tally.saw(node, seen(node), { taints: [] }, { listed: true, now });
  tally.listed();
  // If no relay has counted a released trip yet, the operator released it with the nodes affected now.
  const counted = released.map((former): ReleasedTrip => {
    if ('upTo' in former) return former;
    const { releasedAt: _releasedAt, ...trip } = former;
    return { ...trip, upTo: tally.affectedBy(trip, now) };
  });
  for (const node of chosen) {
    const tainted = { ...node, taints: withTaint(node.taints, taint) };
    tally.saw(tainted, seen(tainted), { taints: seen(node) }, { listed: false, now });
  }
  const { windowMs = 0 } = policy.guard.customTaints ?? {};
  const { trippedAt = now } = trips.find(({ scope }) => scope === 'customTaints') ?? {};
  return { counts: tally.counts(trippedAt - windowMs), released: counted };
}

async function budgetsOf(
  objects: ClusterObjects,
  namespaces: readonly string[],
  unknown: string[],
): Promise<ReadonlyMap<string, readonly Budget[]>> {
  const read = async (namespace: string) => {
    const found = await factOf(() => budgetsIn(objects, namespace));
    if ('value' in found) return [[namespace, found.value] as const];
    unknown.push(
      `Budgets in namespace ${namespace} cannot be read, so only the Eviction API is used: ${found.unknown}`,
    );
    return [];
  };
  return new Map((await pMap(namespaces, read, { concurrency: PARALLEL_CALLS })).flat());
}

/** By dry runs. If the caller lacks the permission in a namespace, it asks there only once. */
async function answersFor(
  objects: ClusterObjects,
  pods: readonly PodThere[],
  unknown: string[],
): Promise<Findings['answers']> {
  const forbidden = new Map<string, Answer>();
  const ask = async (pod: PodThere): Promise<Answer> => {
    const known = forbidden.get(pod.namespace);
    if (known) return known;
    const answer = await answerFor(objects, pod);
    if (answer.kind !== 'unknown' || !answer.forbidden) return answer;
    const { forbidden: _forbidden, ...kept } = answer;
    if (!forbidden.has(pod.namespace)) {
      unknown.push(
        `The Eviction API cannot be used in namespace ${pod.namespace}, so budgets are judged by their status only: ${kept.why}`,
      );
    }
    forbidden.set(pod.namespace, kept);
    return kept;
  };
  const answers = await pMap(pods, async (pod) => [pod.uid, await ask(pod)] as const, {
    concurrency: PARALLEL_CALLS,
  });
  return new Map(answers);
}

type BudgetAnswer = Answer & { readonly forbidden?: boolean };

async function answerFor(objects: ClusterObjects, { namespace, name, uid }: PodThere): Promise<BudgetAnswer> {
  try {
    await objects.tryCreate(`/api/v1/namespaces/${namespace}/pods/${name}/eviction`, {
      apiVersion: 'policy/v1',
      kind: 'Eviction',
      metadata: { namespace, name },
      // Repeat the dry run here, for servers that only read this field.
      deleteOptions: { dryRun: ['All'], preconditions: { uid } },
    });
    return { kind: 'allowed' };
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    // Such a pod is deleted instead.
    if (error.causes.includes(NAMESPACE_TERMINATING)) return { kind: 'allowed' };
    const answer = blockedBy(error);
    if (answer) return { kind: 'blocked', reason: answer.reason };
    return { kind: 'unknown', why: error.message, forbidden: error.status === 403 };
  }
}
