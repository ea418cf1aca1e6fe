import type { ClusterName, NodeName } from '#shared/eviction/identity.ts';
import { DOWN_KEYS } from '#shared/taints/taint.ts';
import type { AskedPod, Forecast } from './forecast.ts';
import type { TaintAccount } from './taints.ts';

/** What keeps a pod where it is. */
export type Remedy =
  /** The pod tolerates for ever what makes it go; for the next pods, their workload's template must say so, too. */
  | { readonly kind: 'tolerate'; readonly command: string }
  /** A taint goes that makes it go. */
  | { readonly kind: 'untaint'; readonly taint: TaintAccount['taint']; readonly command: string }
  /** Its node recovers: the node controller sets these taints for as long as it is down. */
  | { readonly kind: 'fix-node'; readonly taints: readonly TaintAccount['taint'][] }
  /** It is held by Taintward; the built-in controller, where that runs, heeds no hold. */
  | { readonly kind: 'hold'; readonly command: string };

/** Of which pod, node and cluster is spoken. */
export interface Whereabouts {
  /** Absent: no service manages it. */
  readonly cluster?: ClusterName;
  readonly node: NodeName;
  /** The pod garbage collector deletes what is on it, whatever it tolerates. */
  readonly nodeGone: boolean;
  readonly pod: Pick<AskedPod, 'namespace' | 'name' | 'tolerations'>;
}

/** What would keep a pod that goes; nothing where nothing has to. The first alone is enough, and all taints of the others together. */
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
 * Of a pod that runs only the seconds of its tolerations may be changed, and tolerations added. The first that matches
 * decides, so one that is added helps only where none did.
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
