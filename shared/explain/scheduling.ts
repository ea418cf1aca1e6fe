import type { Forecast } from './forecast.ts';
import type { TaintAccount } from './taints.ts';

/** What follows once a pod is gone from its node. */
export interface Scheduling {
  /**
   * Who makes another in its place: its controller, somewhere; its DaemonSet, on this node; the node's kubelet, which a static
   * pod never left.
   */
  readonly replacedBy: 'nobody' | 'controller' | 'daemonset' | 'kubelet';
  /** Taints that keep such a pod from being scheduled onto the node. */
  readonly keptOffBy: readonly TaintAccount['taint'][];
  /**
   * The next one may come to this node again, only to be evicted again: a scheduler asks whether a taint is tolerated, and not
   * for how long.
   */
  readonly loops: boolean;
}

/** What a scheduler makes of the place that a pod leaves. `nodeGone`: nothing is scheduled there any more. */
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
