import { defined } from '#shared/defined.ts';
import type { ClusterName, NodeName } from '#shared/eviction/identity.ts';
import type { Cause } from '#shared/eviction/records.ts';
import { causeTexts } from '#shared/operations/look/history-text.ts';
import type { HistoryEntry } from '#shared/state/history.ts';
import { durationText } from '#shared/time/duration.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import { timeText } from '#shared/time/time-text.ts';
import { causesOutput } from './causes.ts';
import { tableText } from './output.ts';

const SECOND_MS = 1_000;

/** A pod that the built-in controller evicted, or that was due by Taintward, or both. */
export interface ComparedPod {
  readonly cluster: ClusterName;
  readonly node: NodeName;
  readonly namespace: string;
  readonly pod: string;
  /** Time of the eviction by the built-in controller, rounded down to the second. */
  readonly builtInAt?: EpochMs;
  /** Deadline of Taintward's eviction. */
  readonly oursAt?: EpochMs;
  readonly causes: readonly Cause[];
}

export interface Comparison {
  /** Pods that both evicted, in the order of their evictions. */
  readonly both: readonly Required<ComparedPod>[];
  readonly builtInOnly: readonly ComparedPod[];
  readonly oursOnly: readonly ComparedPod[];
}

/**
 * Compares the built-in controller's evictions with Taintward's, oldest first. A pod that would have been evicted
 * counts; one that a gate held does not.
 */
export function compare(entries: readonly HistoryEntry[]): Comparison {
  const pods = new Map<string, ComparedPod>();
  for (const entry of entries) {
    const { cluster, node, uid, namespace, pod, event, dueAt, causes, deleted, by: gate } = entry;
    const byBuiltIn = deleted?.by === 'taint-manager';
    const byUs = event === 'would-evict' || event === 'evicted' || (byBuiltIn && causes.length > 0 && !gate);
    if (!byBuiltIn && !byUs) continue;
    pods.set(uid, {
      cluster,
      node,
      namespace,
      pod,
      causes,
      ...pods.get(uid),
      ...(byBuiltIn ? { builtInAt: deleted.at } : {}),
      ...(byUs ? { oursAt: dueAt, causes } : {}),
    });
  }
  const moment = ({ builtInAt, oursAt }: ComparedPod) => builtInAt ?? oursAt ?? 0;
  const all = [...pods.values()].sort((a, b) => moment(a) - moment(b));
  return {
    both: all.filter(isBoth),
    builtInOnly: all.filter(({ oursAt }) => oursAt === undefined),
    oursOnly: all.filter(({ builtInAt }) => builtInAt === undefined),
  };
}

const isBoth = (pod: ComparedPod): pod is Required<ComparedPod> =>
  pod.builtInAt !== undefined && pod.oursAt !== undefined;

/** The built-in controller's time is known to the second, so Taintward's is rounded down to the second, too. */
const laterMs = ({ builtInAt, oursAt }: Required<ComparedPod>): number =>
  builtInAt - Math.floor(oursAt / SECOND_MS) * SECOND_MS;

/** Returns the median and the largest absolute difference, in milliseconds. */
function differences({ both }: Comparison) {
  const sorted = both.map((pod) => Math.abs(laterMs(pod))).sort((a, b) => a - b);
  const [medianMs, mostMs] = [sorted[Math.floor((sorted.length - 1) / 2)], sorted.at(-1)];
  return medianMs === undefined || mostMs === undefined ? undefined : { medianMs, mostMs };
}

/** Returns a line for each pod and a summary, as text for people. `room`: width of a line. */
export function comparisonText(comparison: Comparison, room: number): string {
  const { both, builtInOnly, oursOnly } = comparison;
  const line = (pod: ComparedPod): readonly string[] => [
    `${pod.namespace}/${pod.pod}`,
    pod.node,
    pod.builtInAt === undefined ? 'never' : timeText(pod.builtInAt),
    pod.oursAt === undefined ? 'never' : timeText(pod.oursAt),
    isBoth(pod) ? `${laterMs(pod) < 0 ? '-' : ''}${durationText(Math.abs(laterMs(pod)))}` : '',
    causeTexts(pod.causes).join('; '),
  ];
  const pods = [...both, ...builtInOnly, ...oursOnly];
  const heads = ['POD', 'NODE', 'BUILT-IN EVICTED AT', 'TAINTWARD DUE AT', 'DIFFERENCE', 'CAUSE'];
  const table = pods.length === 0 ? '' : `${tableText([heads, ...pods.map(line)], room)}\n`;
  return `${table}${summaryText(comparison)}\n`;
}

function summaryText(comparison: Comparison): string {
  const { both, builtInOnly, oursOnly } = comparison;
  const found = differences(comparison);
  const apart = found
    ? ` (median difference ${durationText(found.medianMs)}, maximum ${durationText(found.mostMs)})`
    : '';
  return `Evicted by both: ${both.length}${apart}. By the built-in controller only: ${builtInOnly.length}. By Taintward only: ${oursOnly.length}.`;
}

export function comparisonOutput(comparison: Comparison) {
  const { medianMs: medianDifferenceMs, mostMs: largestDifferenceMs } = differences(comparison) ?? {};
  const pod = (compared: ComparedPod) => ({
    ...compared,
    ...defined({ differenceMs: isBoth(compared) ? laterMs(compared) : undefined }),
    causes: causesOutput(compared.causes),
  });
  return {
    both: comparison.both.map(pod),
    builtInOnly: comparison.builtInOnly.map(pod),
    oursOnly: comparison.oursOnly.map(pod),
    ...defined({ medianDifferenceMs, largestDifferenceMs }),
  };
}
export type ComparisonOutput = ReturnType<typeof comparisonOutput>;
