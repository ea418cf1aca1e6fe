import pMap from 'p-map';
import type { LabelSelector } from '#shared/eviction/selectors.ts';
import type { Budget } from '#shared/explain/budgets.ts';
import { fieldsOf, textOf } from '#shared/kubernetes/http/api-json.ts';
import type { ClusterObjects } from '../fleet/cluster-objects.ts';

const PARALLEL_NAMESPACES = 8;

/** Returns the disruption budgets of a namespace. Rejects with `ApiError`. */
export async function budgetsIn(objects: ClusterObjects, namespace: string): Promise<readonly Budget[]> {
  const path = `/apis/policy/v1/namespaces/${namespace}/poddisruptionbudgets`;
  return (await Array.fromAsync(objects.list(path))).map(projectBudget);
}

/** Returns the disruption budgets of namespaces, by namespace. Rejects with `ApiError`. */
export async function budgetsInAll(
  objects: ClusterObjects,
  namespaces: readonly string[],
): Promise<ReadonlyMap<string, readonly Budget[]>> {
  const read = async (namespace: string) => [namespace, await budgetsIn(objects, namespace)] as const;
  return new Map(await pMap(namespaces, read, { concurrency: PARALLEL_NAMESPACES }));
}

function projectBudget({ metadata, spec, status }: Readonly<Record<string, unknown>>): Budget {
  const { selector } = fieldsOf(spec);
  const { disruptionsAllowed } = fieldsOf(status);
  return {
    name: textOf(fieldsOf(metadata)['name']),
    // The API server has validated it.
    ...(selector ? { selector: selector as LabelSelector } : {}),
    allowed: typeof disruptionsAllowed === 'number' ? disruptionsAllowed : 0,
  };
}
