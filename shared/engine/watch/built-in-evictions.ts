import type { EvictionGate } from '#shared/eviction/eviction-gate.ts';
import { findGate } from '#shared/eviction/gate.ts';
import type { ClusterName, NodeName, PodUid } from '#shared/eviction/identity.ts';
import { podDeadlines } from '#shared/eviction/pod-deadline.ts';
import { DEFAULT_POLICY, type Rules } from '#shared/eviction/policy.ts';
import { wordsOf } from '#shared/explain/gate-text.ts';
import type { LivePod } from '#shared/kubernetes/api.ts';
import type { Log } from '#shared/telemetry/log.ts';
import type { Clock } from '#shared/time/clock.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import type { ClusterFaults } from './cluster-faults.ts';
import type { ClusterView } from './cluster-view.ts';
import type { RelayMetrics } from './relay-metrics.ts';

/** Duration of the fault: the next outage may be hours away, and an operator has to read the fault. */
export const REPORTED_FOR_MS = 3_600_000;
/** Deadlines up to this long after a deletion count as its cause: clocks and watches differ by less. */
const SLACK_MS = 10_000;
/** Maximum pods that are logged, as all pods of a cluster may be evicted. Further pods are only counted. */
const MAX_LOGGED = 100;
/** Maximum pods that are remembered, so that each pod counts once. */
const MAX_REMEMBERED = 50_000;

export interface BuiltInEvictionsDeps {
  readonly view: Pick<ClusterView, 'taintsOf'>;
  readonly rules: () => Rules;
  readonly faults: ClusterFaults;
  readonly metrics: Pick<RelayMetrics, 'builtInEvictions'>;
  readonly clock: Clock;
  readonly log: Log;
}

/**
 * Returns what reports deleted pods that another taint manager evicts although the rules here keep them: held, excluded,
 * guarded, or stopped. Operators rely on these rules. In observe mode, other controllers are expected to evict.
 */
export function builtInEvictions(cluster: ClusterName, deps: BuiltInEvictionsDeps): (pod: LivePod) => void {
  const { faults, metrics, clock, log } = deps;
  const seen = new Set<PodUid>();
  let logged = 0;
  return (pod) => {
    const { uid, node, namespace, name, deleted } = pod;
    if (!node || deleted?.by !== 'taint-manager' || seen.has(uid)) return;
    // A pod that has been terminating for long may have been evicted before this relay counted evictions.
    const lastsMs = deleted.at + REPORTED_FOR_MS - clock.now();
    if (lastsMs <= 0) return;
    if (seen.size >= MAX_REMEMBERED) seen.clear();
    seen.add(uid);
    const gate = findGateOf(pod, node, deleted.at, deps);
    if (!gate || gate.kind === 'observe') return;
    const error = `The built-in controller, or another taint manager, evicts pods that Taintward keeps, the last ${namespace}/${name} (${wordsOf(gate).name(gate)}): switch it off, or take the cluster over.`;
    faults.begin({ type: 'built-in-evicts' }, error, { lastsMs: Math.min(lastsMs, REPORTED_FOR_MS) });
    metrics.builtInEvictions.inc({ cluster });
    logged += 1;
    if (logged > MAX_LOGGED) return;
    const shown = gate.kind === 'hold' ? { by: gate.kind, hold: gate.id } : { by: gate.kind };
    log.warn('pod.evicted-despite-hold', { cluster, node, namespace, pod: name, uid, ...shown });
  };
}

function findGateOf(
  pod: LivePod,
  node: NodeName,
  at: EpochMs,
  deps: Pick<BuiltInEvictionsDeps, 'rules' | 'view'>,
): EvictionGate | undefined {
  const rules = deps.rules();
  const { taints, zone, downSince } = deps.view.taintsOf(node);
  // Evaluate the taints as the built-in controller does.
  const asGiven = { matching: rules.matching, policy: DEFAULT_POLICY };
  const dueBy = taints
    .filter((taint) => !taint.virtual)
    .filter((taint) => {
      const deadline = podDeadlines([taint], undefined, asGiven)(pod.tolerations, pod.podSince);
      return deadline !== undefined && deadline.at <= at + SLACK_MS;
    })
    .map(({ key }) => key);
  return findGate(rules, { node, zone, downSince, dueBy, record: pod, traits: pod }, at);
}
