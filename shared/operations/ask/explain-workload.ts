import pMap from 'p-map';
import { defined } from '#shared/defined.ts';
import { isTarget } from '#shared/eviction/gate.ts';
import { budgetsOf } from '#shared/explain/budgets.ts';
import { workloadHeadline } from '#shared/explain/headline.ts';
import { knownOr } from '#shared/explain/known.ts';
import { type Workload, workloadText } from '#shared/explain/workload.ts';
import { NO_RULES } from '#shared/state/stored-rules.ts';
import type { Clock } from '#shared/time/clock.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import type { Act } from '../acts/act.ts';
import { decide } from '../acts/decide.ts';
import { actState } from '../acts/perform.ts';
import { previewOf } from '../acts/preview.ts';
import { type ContextFleet, type Fleet, FleetError } from '../fleet/fleet.ts';
import type { Blindness } from '../look/blind.ts';
import { budgetsIn } from './budgets.ts';
import { type NodeOfCluster, type NodeStory, nodeStory, sharedFacts } from './explain-node.ts';
import { factOf } from './facts.ts';
import { podsOf } from './hold-target.ts';
import type { PendingGroup } from './pending-groups.ts';
import { reach } from './reach.ts';
import { momentText } from './time-text.ts';
import { WorkloadFinder } from './workload-finder.ts';

export interface WorkloadStory extends Workload, Blindness, Pick<PendingGroup, 'replicas' | 'budgets'> {
  readonly headline: string;
  /** Its nodes, with its pods alone. */
  readonly nodes: readonly NodeStory[];
  /** Effects that a hold would have. Absent: no service manages the cluster. */
  readonly hold?: readonly string[];
}

const PARALLEL_NODES = 8;

/** Explains the pods that a hold of the workload selects, node by node. Rejects with `FleetError` if there are none. */
export async function askWorkload(
  fleet: Fleet | ContextFleet,
  { cluster, matching, ...workload }: Workload & Omit<NodeOfCluster, 'node'>,
  { clock }: { readonly clock: Clock },
): Promise<WorkloadStory> {
  return reach(fleet, cluster, async (reached) => {
    const { namespace, kind, name } = workload;
    const target = { kind: 'workload', namespace, owner: { kind, name } } as const;
    const act = { kind: 'hold', cluster, target, reason: 'a preview' } as const;
    const now = clock.now();
    const found = await reached.askFirst(({ objects }) => Array.fromAsync(podsOf(objects, target)));
    const there = knownOr(found, []);
    const only: NodeOfCluster['only'] = (node, record) =>
      isTarget(target, { node, zone: undefined, record, traits: record });
    const facts = sharedFacts(reached, fleet, cluster, clock);
    const [{ warnings, stalled }, held, budgets, replicas] = await Promise.all([
      facts.relay,
      fleet.kind === 'context' ? undefined : factOf(() => holdOf(act, fleet, now)),
      reached.ask(({ objects }) => budgetsIn(objects, namespace)),
      reached.ask(async ({ objects }) => {
        const finder = new WorkloadFinder(objects);
        await finder.ofEach(there);
        return finder.replicas.get(workloadText(workload));
      }),
      facts.builtIn,
    ]);
    const { pending = [] } = (held && knownOr(held, undefined)) ?? {};
    const stored = 'unknown' in found ? pending.filter(({ node, record }) => only(node, record)) : [];
    const placed = [...there.map(({ pod }) => pod), ...stored];
    const nodes = [...new Set(placed.flatMap(({ node }) => node ?? []))].sort();
    const stories = await pMap(
      nodes,
      (node) => nodeStory(reached, fleet, { cluster, node, matching, only }, { clock, facts }),
      { concurrency: PARALLEL_NODES },
    );
    const [first, ...others] = stories;
    if (!first) {
      const why = 'unknown' in found ? found.unknown : 'Check namespace, kind, and name';
      throw new FleetError(
        `Workload ${workloadText(workload)} has no pods on nodes of cluster ${cluster}. ${why}.`,
      );
    }
    const all = knownOr(budgets, undefined);
    return {
      headline: workloadHeadline(workload, [first, ...others], knownOr(replicas, undefined), (at) =>
        momentText(at, now),
      ),
      ...workload,
      ...defined({
        stalled,
        replicas: knownOr(replicas, undefined),
        budgets: all && [...new Set(there.flatMap(({ pod }) => budgetsOf(all, pod.labels ?? {})))],
        hold: held && ('value' in held ? held.value.effects : [held.unknown]),
      }),
      warnings,
      nodes: stories,
    };
  });
}

/** Rejects with `OperatorError` if the cluster takes no more holds. */
async function holdOf(act: Act<'hold'>, fleet: Fleet, now: EpochMs) {
  const state = await actState(act, fleet, now);
  const { storedRules = NO_RULES } = state.clusters[0] ?? {};
  const { effects } = previewOf(act, state, decide(act, storedRules, { actor: '', now }));
  return { pending: state.pending, effects };
}
