import type { ClusterName, NodeName } from '#shared/eviction/identity.ts';
import { DOWN_KEYS } from '#shared/taints/taint.ts';
import type { Forecast, ForecastPod } from './forecast.ts';
import type { TaintAccount } from './taints.ts';

/** A way to keep a pod on its node. */
export type Remedy =
  /** The pod tolerates its evicting taints indefinitely. Future pods need a change of the workload's template. */
  | { readonly kind: 'tolerate'; readonly command: string }
  | { readonly kind: 'untaint'; readonly taint: TaintAccount['taint']; readonly command: string }
  /** The node recovers. The node controller keeps these taints while the node is down. */
  | { readonly kind: 'fix-node'; readonly taints: readonly TaintAccount['taint'][] }
  /** A Taintward hold keeps the pod. The built-in controller, if enabled, ignores holds. */
  | { readonly kind: 'hold'; readonly command: string };

export interface Whereabouts {
  /** Absent: no service manages the cluster. */
  readonly cluster?: ClusterName;
  readonly node: NodeName;
  /** The pod garbage collector deletes the node's pods, whatever they tolerate. */
  readonly nodeGone: boolean;
  readonly pod: Pick<ForecastPod, 'namespace' | 'name' | 'tolerations'>;
}

/** Ways to keep a pod; empty if nothing can or need. The first alone suffices; else, all taints must be handled. */
export function remediesFor(
  accounts: readonly TaintAccount[],
  { cluster, node, nodeGone, pod }: Whereabouts,
  forecast: Forecast,
): readonly Remedy[] {
  const limiting = accounts.filter(({ deadlineAt }) => deadlineAt !== undefined);
  if (limiting.length === 0 || nodeGone || forecast.kind === 'terminating') return [];
  const taints = limiting.map(({ taint }) => taint);
  const down = taints.filter(({ key }) => DOWN_KEYS.includes(key));
  const byPeople = taints.filter((taint) => !down.includes(taint));
  const { namespace, name } = pod;
  const held = forecast.kind === 'held' || forecast.kind === 'blocked';
  return [
    { kind: 'tolerate', command: tolerateCommand(limiting, pod) },
    ...byPeople.map((taint): Remedy => {
      const command = `kubectl taint nodes ${node} ${taint.key}:${taint.effect}-`;
      return { kind: 'untaint', taint, command };
    }),
    ...(down.length > 0 ? [{ kind: 'fix-node', taints: down } as const] : []),
    ...(cluster === undefined || held
      ? []
      : [
          {
            kind: 'hold',
            command: `taintward hold pod ${namespace}/${name} --cluster ${cluster} --reason 'REASON'`,
          } as const,
        ]),
  ];
}

/**
 * Adds tolerations to a running pod, or removes their seconds: nothing else is allowed. The first match counts, so a
 * new one helps only for a taint without a match.
 */
function tolerateCommand(
  limiting: readonly TaintAccount[],
  { namespace, name, tolerations }: Whereabouts['pod'],
): string {
  const limited = new Set(limiting.flatMap(({ toleration }) => toleration?.index ?? []));
  const keys = new Set(limiting.filter(({ toleration }) => !toleration).map(({ taint }) => taint.key));
  const added = [...keys].map((key) => ({ key, operator: 'Exists', effect: 'NoExecute' }));
  const operations = [
    ...[...limited].map((index) => ({ op: 'remove', path: `/spec/tolerations/${index}/tolerationSeconds` })),
    ...(tolerations.length === 0
      ? [{ op: 'add', path: '/spec/tolerations', value: added }]
      : added.map((value) => ({ op: 'add', path: '/spec/tolerations/-', value }))),
  ];
  return `kubectl patch pod ${name} --namespace ${namespace} --type json --patch '${JSON.stringify(operations)}'`;
}
