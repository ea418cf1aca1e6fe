import type { ClusterName } from '#shared/eviction/identity.ts';
import type { StuckPod } from '#shared/eviction/stuck.ts';
import { NODE_OUT_OF_SERVICE } from '#shared/taints/taint.ts';
import { timeText } from '#shared/time/time-text.ts';
import { type Column, type Shown, tableOf } from './output.ts';
import type { Paint } from './paint.ts';

/** An evicted pod that is stuck terminating. */
export type StuckPodOf = StuckPod & { readonly cluster: ClusterName };

export const stuckShown = (found: readonly StuckPodOf[], paint: Paint): Shown => ({
  data: () =>
    found.map(({ cluster, node, namespace, name, uid, gracePeriodEndedAt, ...state }) => ({
      cluster,
      node,
      namespace,
      pod: name,
      uid,
      gracePeriodEndedAt: timeText(gracePeriodEndedAt),
      ...state,
      remediation: adviceOn(state),
    })),
  text: (wide) =>
    found.length === 0 ? 'No pods are stuck terminating.\n' : tableOf(found, COLUMNS, { wide, paint }),
});

const COLUMNS: readonly Column<StuckPodOf>[] = [
  { head: 'CLUSTER', of: ({ cluster }) => cluster },
  { head: 'NODE', of: ({ node }) => node },
  { head: 'POD', of: ({ namespace, name }) => `${namespace}/${name}` },
  { head: 'UID', of: ({ uid }) => uid, wide: true },
  { head: 'GRACE PERIOD ENDED', of: ({ gracePeriodEndedAt }) => timeText(gracePeriodEndedAt) },
  { head: 'FINALIZERS', of: ({ finalizers }) => finalizers.join(', ') },
  { head: 'REMEDIATION', of: adviceOn },
];

/** Taintward never deletes pods by force, because their containers may still run. */
function adviceOn({ finalizers, nodeState }: Pick<StuckPod, 'finalizers' | 'nodeState'>): string {
  if (finalizers.length > 0 && nodeState === 'there') {
    return 'the controller of each finalizer must remove it: check that the controller runs, and check its log';
  }
  const first = finalizers.length > 0 ? 'the controller of each finalizer must remove it; before that, ' : '';
  switch (nodeState) {
    case 'unreachable':
      return `${first}its kubelet doesn't respond: if the machine is powered off, taint the node ${NODE_OUT_OF_SERVICE}=nodeshutdown:NoExecute, or delete the Node`;
    case 'gone':
      return `${first}its node was deleted: check that the pod garbage collector of kube-controller-manager runs`;
    case 'there':
      return 'its kubelet runs but has not stopped it: check the log of the kubelet, and volumes that are still mounted';
    default:
      return nodeState satisfies never;
  }
}
