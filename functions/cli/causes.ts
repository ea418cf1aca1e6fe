import type { Cause } from '#shared/eviction/records.ts';
import { taintText } from '#shared/taints/taint.ts';

export const causesOutput = (causes: readonly Cause[]) =>
  causes.map(({ taint, ...cause }) => ({ taint: taintText(taint), ...cause }));
