import { matchesLabels } from '#shared/eviction/gate.ts';
import type { LabelSelector } from '#shared/eviction/selectors.ts';

/** A disruption budget, with the status that its controller set. */
export interface Budget {
  readonly name: string;
  /** Absent: the budget selects no pod. */
  readonly selector?: LabelSelector;
  /** Healthy pods that may be evicted now. */
  readonly allowed: number;
}

/** Returns the budgets of a namespace that select a pod with these labels. */
export const budgetsOf = (
  budgets: readonly Budget[],
  labels: Readonly<Record<string, string>>,
): readonly Budget[] => budgets.filter(({ selector }) => selector && matchesLabels(selector, labels));

/** Reports whether the Eviction API blocks a pod with these budgets: one allows no disruption, or there are several. */
export const refuses = (budgets: readonly Budget[]): boolean =>
  budgets.length > 1 || budgets.some(({ allowed }) => allowed <= 0);
