/** The settings and the status of a Job (`batch/v1`) that decide how it counts an evicted pod. */
export interface Job {
  readonly failed: number;
  readonly backoffLimit: number;
  readonly backoffLimitPerIndex?: number;
  /** Number of indexes that may still fail without failing the Job; absent: any. */
  readonly indexesLeft?: number;
  /** Action of the first rule in `podFailurePolicy` that applies to evicted pods; absent: none applies. */
  readonly action?: 'Ignore' | 'Count' | 'FailIndex' | 'FailJob';
}

/** The reaction of a Job to evictions; `reason`: the deciding settings. */
export type JobOutcome =
  | { readonly kind: 'replaced' | 'not-counted' | 'index-fails' | 'job-fails'; readonly reason: string }
  | { readonly kind: 'unknown' };

/**
 * The reaction of a Job to the eviction of running pods: its controller counts deleted pods as failed, unless they
 * still succeed. `job`: absent if unreadable. `indexFailures`: earlier ones of each pod's index.
 */
export function jobOutcome(job: Job | undefined, indexFailures: readonly number[]): JobOutcome {
  if (!job) return { kind: 'unknown' };
  const { failed, backoffLimit, action } = job;
  const { backoffLimitPerIndex: limit = Infinity, indexesLeft = Infinity } = job;
  const all = failed + indexFailures.length;
  const counted = `failures: ${all}, backoffLimit: ${backoffLimit}`;
  const byPolicy = `podFailurePolicy: ${action} for evicted pods`;
  if (action === 'Ignore') return { kind: 'not-counted', reason: byPolicy };
  if (action === 'FailJob') return { kind: 'job-fails', reason: byPolicy };
  if (all > backoffLimit) return { kind: 'job-fails', reason: counted };
  const failing = action === 'FailIndex' ? indexFailures : indexFailures.filter((each) => each >= limit);
  if (failing.length === 0) return { kind: 'replaced', reason: counted };
  if (failing.length > indexesLeft) return { kind: 'job-fails', reason: 'maxFailedIndexes exceeded' };
  if (action === 'FailIndex') return { kind: 'index-fails', reason: byPolicy };
  const most = Math.max(...failing) + 1;
  return { kind: 'index-fails', reason: `failures: ${most}, backoffLimitPerIndex: ${limit}` };
}

/** Reports whether the outcome fails the Job, immediately or when its other indexes end. */
export const failsJob = (outcome: JobOutcome): boolean =>
  outcome.kind === 'job-fails' || outcome.kind === 'index-fails';

export function jobText(outcome: JobOutcome): string {
  switch (outcome.kind) {
    case 'job-fails':
      return `fails (${outcome.reason})`;
    case 'index-fails':
      return `fails when its other indexes end (${outcome.reason})`;
    case 'replaced':
      return `creates a replacement (${outcome.reason})`;
    case 'not-counted':
      return `creates a replacement and counts no failure (${outcome.reason})`;
    case 'unknown':
      return 'creates a replacement or fails: its limits are unknown';
    default:
      return outcome satisfies never;
  }
}
