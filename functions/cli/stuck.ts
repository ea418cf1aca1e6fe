import type { Leases } from '#shared/clusters/lease.ts';
import type { StuckPod } from '#shared/clusters/stuck.ts';
import type { ClusterName } from '#shared/eviction/identity.ts';
import { NODE_OUT_OF_SERVICE } from '#shared/taints/taint.ts';
import { jsonText, type OutputFormat, tableText, timeText } from './output.ts';

/** Evicted pods of these clusters that do not leave, as text, with what helps. */
export async function stuckOf(
  leases: Pick<Leases, 'stuck'>,
  clusters: readonly ClusterName[],
  output: OutputFormat,
): Promise<string> {
  const found: (StuckPod & { readonly cluster: ClusterName })[] = [];
  for (const cluster of clusters) {
    for (const pod of await leases.stuck(cluster)) found.push({ cluster, ...pod });
  }
  if (output === 'json') {
    return jsonText(
      found.map(({ cluster, node, namespace, name, uid, overAt, ...why }) => ({
        ...{ cluster, node, namespace, pod: name, uid, graceOverAt: timeText(overAt) },
        ...{ ...why, advice: adviceOn(why) },
      })),
    );
  }
  if (found.length === 0) return 'Every evicted pod has left.\n';
  return tableText([
    ['CLUSTER', 'NODE', 'POD', 'GRACE OVER SINCE', 'FINALIZERS', 'WHAT HELPS'],
    ...found.map((pod) => [
      pod.cluster,
      pod.node,
      `${pod.namespace}/${pod.name}`,
      timeText(pod.overAt),
      pod.finalizers.join(', '),
      adviceOn(pod),
    ]),
  ]);
}

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
