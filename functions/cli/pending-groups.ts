import { type Grouping, groupTexts, type PendingGroup } from '#shared/operations/ask/pending-groups.ts';
import { durationText } from '#shared/time/duration.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import type { Column } from './output.ts';

export const groupOutput = ({ cluster, place, target: _, holds: _holds, ...group }: PendingGroup) => ({
  cluster,
  ...place,
  ...group,
});
export type GroupOutput = ReturnType<typeof groupOutput>;

export const groupColumns = (grouping: Grouping, at: EpochMs): readonly Column<PendingGroup>[] => [
  { head: 'CLUSTER', of: ({ cluster }) => cluster },
  { head: grouping.toUpperCase(), of: (group) => groupTexts(group).name },
  { head: 'PENDING', of: ({ pending }) => String(pending) },
  { head: 'DUE', of: ({ due }) => String(due) },
  { head: 'HELD', of: (group) => groupTexts(group).keptBy },
  { head: 'NEXT', of: ({ nextAt }) => (nextAt === undefined ? '' : `in ${durationText(nextAt - at)}`) },
  ...(grouping === 'workload' ? OF_WORKLOADS : []),
];

const OF_WORKLOADS: readonly Column<PendingGroup>[] = [
  { head: 'READY', of: (group) => groupTexts(group).ready },
  { head: 'BUDGET', of: (group) => groupTexts(group).budget },
];
