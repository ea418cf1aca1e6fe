import type { Job } from '#shared/explain/job.ts';
import type { PodThere } from '#shared/explain/what-if.ts';
import { fieldsOf, itemsOf, textOf } from '#shared/kubernetes/http/api-json.ts';

type Json = Readonly<Record<string, unknown>>;

const ACTIONS: readonly NonNullable<Job['action']>[] = ['Ignore', 'Count', 'FailIndex', 'FailJob'];
/** Exit codes of containers that SIGTERM or SIGKILL ended. */
const ENDED_BY_SIGNAL: readonly unknown[] = [143, 137];

/** Converts a Job's JSON. Absent limits have the API server's defaults. */
export function projectJob({ spec, status }: Json): Job {
  const { backoffLimit, backoffLimitPerIndex: perIndex, maxFailedIndexes, podFailurePolicy } = fieldsOf(spec);
  const { failed, failedIndexes } = fieldsOf(status);
  const rule = itemsOf(fieldsOf(podFailurePolicy)['rules']).map(fieldsOf).find(matchesEvicted);
  const action = ACTIONS.find((each) => each === rule?.['action']);
  const limited = typeof perIndex === 'number';
  return {
    failed: numberOf(failed, 0),
    backoffLimit: numberOf(backoffLimit, limited ? Number.POSITIVE_INFINITY : 6),
    ...(limited ? { backoffLimitPerIndex: perIndex } : {}),
    ...(typeof maxFailedIndexes === 'number'
      ? { indexesLeft: maxFailedIndexes - countIn(textOf(failedIndexes)) }
      : {}),
    ...(action ? { action } : {}),
  };
}

/** Returns the number of indexes in a list like `0,2-4`. */
const countIn = (indexes: string): number =>
  indexes.split(',').reduce((count, range) => {
    const [from, to = from] = range.split('-').map(Number);
    return range === '' ? count : count + Number(to) - Number(from) + 1;
  }, 0);

export const numberOf = (value: unknown, absent: number): number =>
  typeof value === 'number' ? value : absent;

function matchesEvicted({ onExitCodes, onPodConditions }: Json): boolean {
  const { operator, values } = fieldsOf(onExitCodes);
  if (onExitCodes)
    return ENDED_BY_SIGNAL.some((code) => itemsOf(values).includes(code) === (operator === 'In'));
  return itemsOf(onPodConditions)
    .map(fieldsOf)
    .some(({ type, status = 'True' }) => type === 'DisruptionTarget' && status === 'True');
}

/** Returns the fields of a pod's JSON that decide what its eviction breaks. */
export function traitsOf(json: unknown): Pick<PodThere, 'finished' | 'indexFailures'> {
  const { metadata, status } = fieldsOf(json);
  const annotations = fieldsOf(fieldsOf(metadata)['annotations']);
  const indexFailures = Number(textOf(annotations['batch.kubernetes.io/job-index-failure-count'])) || 0;
  const finished = ['Succeeded', 'Failed'].includes(textOf(fieldsOf(status)['phase']));
  return { indexFailures, ...(finished ? { finished } : {}) };
}
