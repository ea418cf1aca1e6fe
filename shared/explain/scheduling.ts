import type { Forecast } from './forecast.ts';
import { failsJob, type JobOutcome } from './job.ts';
import type { TaintAccount } from './taints.ts';

/** Facts besides the owner that decide whether a pod is replaced. */
export interface PodEnd {
  /** The pod has succeeded or failed. Absent: no. */
  readonly finished?: true;
  /** With a Job as owner: its reaction to the eviction. */
  readonly job?: JobOutcome;
}

/** The consequences of a pod's removal from its node. */
export interface Scheduling extends PodEnd {
  /**
   * The actor that replaces the pod: its controller, on any node, or its DaemonSet, on this node. The node's kubelet
   * never stops a static pod.
   */
  readonly replacedBy: 'nobody' | 'controller' | 'daemonset' | 'kubelet';
  /** Taints that keep such a pod from being scheduled onto the node. */
  readonly keptOffBy: readonly TaintAccount['taint'][];
  /**
   * The replacement may be scheduled to this node and be evicted again: a scheduler checks whether a taint is
   * tolerated, not for how long.
   */
  readonly loops: boolean;
}

/** Returns the consequences for the scheduler of a pod's removal. `nodeGone`: no pod is scheduled to the node any more. */
export function schedulingOf(
  owner: { readonly kind: string } | undefined,
  accounts: readonly TaintAccount[],
  forecast: Forecast,
  nodeGone: boolean,
  end: PodEnd = {},
): Scheduling {
  const replacedBy = end.finished || (end.job && failsJob(end.job)) ? 'nobody' : makerOf(owner);
  // No scheduler places mirror pods.
  const keeping = replacedBy === 'kubelet' ? [] : accounts.filter(({ schedules }) => !schedules);
  const keptOffBy = keeping.map(({ taint }) => taint);
  const limited = accounts.some(({ deadlineAt }) => deadlineAt !== undefined);
  // A recreated mirror pod is held.
  const returns = !['nobody', 'kubelet'].includes(replacedBy) && keptOffBy.length === 0 && !nodeGone;
  return { ...end, replacedBy, keptOffBy, loops: forecast.kind !== 'keep' && limited && returns };
}

function makerOf(owner: { readonly kind: string } | undefined): Scheduling['replacedBy'] {
  switch (owner?.kind) {
    case undefined:
      return 'nobody';
    case 'DaemonSet':
      return 'daemonset';
    case 'Node':
      return 'kubelet';
    default:
      return 'controller';
  }
}
