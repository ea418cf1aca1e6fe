import type { LabelSelector } from '#shared/eviction/selectors.ts';
import type { Budget } from '#shared/explain/budgets.ts';
import { fieldsOf, textOf } from '#shared/kubernetes/http/api-json.ts';
import type { ClusterObjects } from '../fleet/cluster-objects.ts';

/** Returns the disruption budgets of a namespace. Rejects with `ApiError`. */
export async function budgetsIn(objects: ClusterObjects, namespace: string): Promise<readonly Budget[]> {
  const path = `/apis/policy/v1/namespaces/${namespace}/poddisruptionbudgets`;
  return (await Array.fromAsync(objects.list(path))).map(projectBudget);
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
