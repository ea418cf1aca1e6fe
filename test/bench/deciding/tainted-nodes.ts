import type { Taint } from '#shared/taints/taint.ts';
import { SeededRandom } from '#test/simulation/seeded-random.ts';

/** A toleration in the API's JSON. */
export interface JsonToleration {
  readonly key?: string;
  readonly operator?: string;
  readonly value?: string;
  readonly effect?: string;
  readonly tolerationSeconds?: number;
}

/** A tainted node and the tolerations of its pods in the API's JSON. */
export interface TaintedNode {
  readonly taints: readonly Taint[];
  readonly pods: readonly { readonly tolerations: readonly JsonToleration[] }[];
}

const DOWN = ['node.kubernetes.io/not-ready', 'node.kubernetes.io/unreachable'] as const;
const KEYS = [...DOWN, 'maintenance', 'dedicated', 'gpu', 'node.kubernetes.io/out-of-service'] as const;
const SEED = 20261122;

/**
 * Returns nodes with one to three taints, each with pods of five workloads. As in real clusters, all pods have the
 * defaults of admission (300 s for a node that is down). Most tolerate something more, and one tolerates everything
 * indefinitely.
 */
export function taintedNodes(nodes: number, podsPerNode: number): readonly TaintedNode[] {
  const random = new SeededRandom(SEED);
  const below = (count: number) => Math.floor(random.next() * count);
  const workloads = Array.from({ length: 50 }, (_, index): readonly JsonToleration[] => {
    if (index % 10 === 0) return [{ operator: 'Exists' }];
    const added = DOWN.map((key) => ({
      key,
      operator: 'Exists',
      effect: 'NoExecute',
      tolerationSeconds: 300,
    }));
    const own = Array.from({ length: below(4) }, () => ({
      key: KEYS[2 + below(4)] ?? 'gpu',
      ...(below(2) === 0 ? { operator: 'Exists' } : { operator: 'Equal', value: 'true' }),
      effect: 'NoExecute',
      ...(below(3) === 0 ? {} : { tolerationSeconds: below(3600) }),
    }));
    return [...own, ...added];
  });
  return Array.from({ length: nodes }, () => {
    const first = below(KEYS.length);
    const keys = Array.from(
      { length: 1 + below(3) },
      (_, index) => KEYS[(first + index) % KEYS.length] ?? 'gpu',
    );
    const own = Array.from({ length: 5 }, () => below(workloads.length));
    return {
      taints: keys.map((key) => ({ key, value: 'true', effect: 'NoExecute' })),
      pods: Array.from({ length: podsPerNode }, () => ({
        tolerations: workloads[own[below(own.length)] ?? 0] ?? [],
      })),
    };
  });
}
