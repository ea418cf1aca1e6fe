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
  /** Its controller, on any node, or its DaemonSet, on this node. A node's kubelet never stops a static pod. */
  readonly replacedBy: 'nobody' | 'controller' | 'daemonset' | 'kubelet';
  readonly keptOffBy: readonly TaintAccount['taint'][];
  /**
   * The replacement may come here and be evicted again: schedulers check whether, not how long, it tolerates a taint.
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
