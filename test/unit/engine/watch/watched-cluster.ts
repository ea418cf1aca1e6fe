import { Registry } from 'prom-client';
import { ClusterFaults } from '#shared/engine/watch/cluster-faults.ts';
import type { ClusterView } from '#shared/engine/watch/cluster-view.ts';
import { ClusterWatch, type ClusterWatchDeps } from '#shared/engine/watch/cluster-watch.ts';
import { PodFollowLimits } from '#shared/engine/watch/follow-pods.ts';
import { relayMetrics } from '#shared/engine/watch/relay-metrics.ts';
import { clusterName } from '#shared/eviction/identity.ts';
import type { LiveNode, LivePod } from '#shared/kubernetes/api.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import { recordingLog } from '#test/contracts/recording-log.ts';
import { drivenClock } from '#test/world/driven-timers.ts';
import { enforced } from '#test/world/enforced-rules.ts';
import { FakeCluster } from '#test/world/fake-cluster.ts';
import { ScriptedResource } from './scripted-resource.ts';

/** A cluster whose lists and watches follow scripts. */
export class WatchedCluster extends FakeCluster {
  readonly #nodes = new ScriptedResource<LiveNode>();
  readonly #pods = new ScriptedResource<LivePod>();

  constructor(now: () => EpochMs) {
    super({ now });
  }

  override get nodes(): ScriptedResource<LiveNode> {
    return this.#nodes;
  }

  override get pods(): ScriptedResource<LivePod> {
    return this.#pods;
  }
}

/** Returns a watch of the cluster `c1` by driven timers, whose store is empty, and which sends nothing. */
export const watchOf = (
  api: ConstructorParameters<typeof ClusterWatch>[1],
  view: ClusterView,
  deps: Partial<ClusterWatchDeps> = {},
): ClusterWatch =>
  new ClusterWatch(clusterName('c1'), api, view, {
    rules: enforced({ comparisonOperators: false }),
    claim: async () => undefined,
    counted: () => undefined,
    deleted: () => undefined,
    gone: () => undefined,
    mark: () => undefined,
    store: { async *taintedNodes() {} },
    limits: new PodFollowLimits(),
    clock: drivenClock,
    log: recordingLog(),
    metrics: relayMetrics(new Registry()),
    faults: new ClusterFaults(drivenClock),
    ...deps,
  });
