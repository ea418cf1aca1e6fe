import type { LiveNode, LivePod } from '#shared/kubernetes/api.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
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
