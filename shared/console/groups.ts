import type { ClusterName } from '#shared/eviction/identity.ts';
import { GROUPINGS, groupTexts, pendingGroups, placesIn } from '#shared/operations/ask/pending-groups.ts';
import type { Fleet } from '#shared/operations/fleet/fleet.ts';
import { cached } from '#shared/time/cache.ts';
import type { Clock } from '#shared/time/clock.ts';
import type { GroupsPage, GroupsQuestion } from './api.ts';
import type { FleetView } from './fleet-view.ts';

/** Age up to which the places of pods are used. Reading them takes several requests for each node and workload. */
export const PLACES_MS = 15_000;

/** Returns a function that groups pending evictions as `taintward pending --by` does. */
export function groupsIn(fleet: Fleet, view: FleetView, clock: Clock) {
  const pendingIn = async (cluster: ClusterName) =>
    (await view.read()).pending.filter((each) => each.cluster === cluster);
  const placesOf = Object.fromEntries(
    GROUPINGS.map((by) => [
      by,
      cached(
        PLACES_MS,
        async (cluster: ClusterName) => placesIn(fleet, cluster, by, await pendingIn(cluster)),
        clock,
      ),
    ]),
  );
  return async ({ cluster: only, state, by }: GroupsQuestion): Promise<GroupsPage> => {
    const { at, clusters, pending } = await view.read();
    const shown = clusters.filter(({ cluster }) => (only ?? cluster) === cluster);
    const found = await Promise.all(
      shown.map(async ({ cluster }) => {
        const its = pending.filter(({ cluster: of, row }) => of === cluster && (state ?? row[6]) === row[6]);
        const places = its.length === 0 ? undefined : await placesOf[by]?.(cluster);
        return pendingGroups(fleet, { cluster, pending: its }, by, at, places);
      }),
    );
    return {
      groups: found.flatMap(({ groups }) => groups.map((group) => ({ ...group, ...groupTexts(group) }))),
      unknown: found.flatMap(({ unknown }) => unknown),
    };
  };
}
