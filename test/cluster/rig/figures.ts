/** Returns the value below which a share of the (unsorted) values lies; NaN for an empty list. */
export function quantile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)] ?? Number.NaN;
}

/** Returns, for example, `p50 12 ms, p99 40 ms, longest 41 ms`. */
export const latencyText = (ms: readonly number[]): string =>
  `p50 ${quantile(ms, 0.5)} ms, p99 ${quantile(ms, 0.99)} ms, longest ${quantile(ms, 1)} ms`;
