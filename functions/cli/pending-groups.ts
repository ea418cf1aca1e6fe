import { keptLabel } from '#shared/explain/gate-text.ts';
import { workloadText } from '#shared/explain/workload.ts';
import type { Grouping, PendingGroup } from '#shared/operations/ask/pending-groups.ts';
import { durationText } from '#shared/time/duration.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import type { Column } from './output.ts';

export const groupOutput = ({ cluster, place, ...group }: PendingGroup) => ({ cluster, ...place, ...group });
export type GroupOutput = ReturnType<typeof groupOutput>;

export const groupColumns = (grouping: Grouping, at: EpochMs): readonly Column<PendingGroup>[] => [
  { head: 'CLUSTER', of: ({ cluster }) => cluster },
  { head: grouping.toUpperCase(), of: ({ place }) => placeText(place) },
  { head: 'PENDING', of: ({ pending }) => String(pending) },
  { head: 'DUE', of: ({ due }) => String(due) },
  { head: 'HELD', of: heldText },
  { head: 'NEXT', of: ({ nextAt }) => (nextAt === undefined ? '' : `in ${durationText(nextAt - at)}`) },
  ...(grouping === 'workload' ? OF_WORKLOADS : []),
];

const OF_WORKLOADS: readonly Column<PendingGroup>[] = [
  { head: 'READY', of: ({ replicas }) => (replicas ? `${replicas.ready} of ${replicas.desired}` : '') },
  {
    head: 'BUDGET',
    of: ({ budgets = [] }) => budgets.map(({ name, allowed }) => `${name} allows ${allowed}`).join(', '),
  },
];

function placeText(place: PendingGroup['place']): string {
  if ('namespace' in place) return workloadText(place);
  return 'node' in place ? place.node : (place.zone ?? '(unknown)');
}

/** "2 on hold, 1 failed". */
function heldText({ heldBy, blocked, retrying, failed }: PendingGroup): string {
  const gates = Object.entries(heldBy).map(
    ([kind, count]) => [keptLabel(kind as keyof typeof heldBy), count] as const,
  );
  return [...gates, ...Object.entries({ blocked, retrying, failed })]
    .flatMap(([label, count]) => (count === 0 ? [] : [`${count} ${label}`]))
    .join(', ');
}
