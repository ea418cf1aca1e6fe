import type { Forecast } from './forecast.ts';
import type { TaintAccount } from './taints.ts';

/** The consequences of a pod's removal from its node. */
export interface Scheduling {
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
): Scheduling {
  const replacedBy = makerOf(owner);
  const keptOffBy = accounts.filter(({ schedules }) => !schedules).map(({ taint }) => taint);
  const limited = accounts.some(({ deadlineAt }) => deadlineAt !== undefined);
  const returns = replacedBy !== 'nobody' && keptOffBy.length === 0 && !nodeGone;
  return { replacedBy, keptOffBy, loops: forecast.kind !== 'keep' && limited && returns };
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
