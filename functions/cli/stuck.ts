import type { StuckPod } from '#shared/clusters/stuck.ts';
import type { ClusterName } from '#shared/eviction/identity.ts';
import { NODE_OUT_OF_SERVICE } from '#shared/taints/taint.ts';
import { timeText } from '#shared/time/time-text.ts';
import { type Column, type Shown, tableOf } from './output.ts';
import type { Paint } from './paint.ts';

/** An evicted pod that does not leave. */
export type StuckPodOf = StuckPod & { readonly cluster: ClusterName };

/** Evicted pods that do not leave, with what helps. */
export const stuckShown = (found: readonly StuckPodOf[], paint: Paint): Shown => ({
  data: () =>
    found.map(({ cluster, node, namespace, name, uid, overAt, ...why }) => ({
      ...{ cluster, node, namespace, pod: name, uid, graceOverAt: timeText(overAt) },
      ...{ ...why, advice: adviceOn(why) },
    })),
  text: (wide) =>
    found.length === 0 ? 'Every evicted pod has left.\n' : tableOf(found, COLUMNS, { wide, paint }),
});

const COLUMNS: readonly Column<StuckPodOf>[] = [
  { head: 'CLUSTER', of: ({ cluster }) => cluster },
  { head: 'NODE', of: ({ node }) => node },
  { head: 'POD', of: ({ namespace, name }) => `${namespace}/${name}` },
  { head: 'UID', of: ({ uid }) => uid, wide: true },
  { head: 'GRACE OVER SINCE', of: ({ overAt }) => timeText(overAt) },
  { head: 'FINALIZERS', of: ({ finalizers }) => finalizers.join(', ') },
  { head: 'REMEDIATION', of: adviceOn },
];

/** What an operator can do about a pod that does not leave. We delete nothing by force: its containers may still run. */
function adviceOn({ finalizers, nodeState }: Pick<StuckPod, 'finalizers' | 'nodeState'>): string {
  if (finalizers.length > 0 && nodeState === 'there') {
    return 'the controller of each finalizer must remove it: look whether it runs, and at its log';
  }
  const first =
    finalizers.length > 0 ? 'the controller of each finalizer must remove it; and before that, ' : '';
  switch (nodeState) {
    case 'unreachable':
      return `${first}its kubelet does not answer: if the machine is off for certain, taint the node ${NODE_OUT_OF_SERVICE}=nodeshutdown:NoExecute, which helps pods that terminate already, or delete the Node`;
    case 'gone':
      return `${first}its node is gone: the pod garbage collector of kube-controller-manager deletes it, so look whether that runs`;
    case 'there':
      return 'its kubelet runs and has not ended it: look at its log, and at volumes that are not unmounted';
    default:
      return nodeState satisfies never;
  }
}
