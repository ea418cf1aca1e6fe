import { matchesLabels } from '#shared/eviction/gate.ts';
import type { LabelSelector } from '#shared/eviction/label-selector.ts';

/** A disruption budget, as its controller left it. */
export interface Budget {
  readonly name: string;
  /** Absent: it is about no pod. */
  readonly selector?: LabelSelector;
  /** Healthy pods that may go now. */
  readonly allowed: number;
}

/** Those of a namespace's budgets that are about a pod with these labels. */
export const budgetsOf = (
  budgets: readonly Budget[],
  labels: Readonly<Record<string, string>>,
): readonly Budget[] => budgets.filter(({ selector }) => selector && matchesLabels(selector, labels));

/** Whether the Eviction API refuses a pod that has these budgets: one allows nothing, or there are several. */
export const refuses = (budgets: readonly Budget[]): boolean =>
  budgets.length > 1 || budgets.some(({ allowed }) => allowed <= 0);
