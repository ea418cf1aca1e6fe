import { isDeepStrictEqual } from 'node:util';
import { defined } from '#shared/defined.ts';
import type { ClusterName } from '#shared/eviction/identity.ts';
import { changedSettings } from '#shared/state/policy-change.ts';
import type { Access, RegisteredCluster } from '#shared/state/registry.ts';
import type { StoredRules } from '#shared/state/rules-store.ts';
import { parsePolicyOnce } from '#shared/state/stored-rules.ts';
import { type Fleet, storedRulesNow } from '../fleet/fleet.ts';
import { type FleetDocuments, resolvePolicies } from '../fleet/fleet-documents.ts';
import type { RulesAct } from './act.ts';

export type RegistryAct =
  | { readonly kind: 'add'; readonly to: RegisteredCluster<Access> }
  | { readonly kind: 'change'; readonly from: RegisteredCluster; readonly to: RegisteredCluster<Access> }
  | { readonly kind: 'remove'; readonly from: RegisteredCluster };

/** The changes after which a fleet is as its documents declare. Empty: nothing has to change. */
export interface FleetPlan {
  readonly registrations: readonly RegistryAct[];
  readonly policies: readonly RulesAct<'apply-policy' | 'withdraw-policy'>[];
  readonly faults: readonly string[];
}

export interface PresentFleet {
  /** The clusters that are managed. */
  readonly clusters: readonly ClusterName[];
  /** Absent: clusters are chosen otherwise, as by `npm start`. */
  readonly registered?: readonly RegisteredCluster[] | undefined;
  /** Rules of the managed clusters, and of clusters that documents declare. */
  readonly rules: ReadonlyMap<ClusterName, StoredRules>;
}

export interface PlanOptions {
  /** Removes clusters without a document, and withdraws policies that none declares. */
  readonly prune: boolean;
  readonly reason?: string | undefined;
  readonly now: number;
}

/** Reads what documents may change. */
export async function presentFleet(
  { names }: Pick<FleetDocuments, 'names'>,
  fleet: Pick<Fleet, 'clusters' | 'registry' | 'rulesStore'>,
): Promise<PresentFleet> {
  const registered = (await fleet.registry?.list())?.clusters;
  const clusters = registered?.map(({ name }) => name) ?? (await fleet.clusters());
  return { clusters, registered, rules: await storedRulesNow([...new Set([...clusters, ...names])], fleet) };
}

/** Plans what documents change in a fleet. Equal settings are no change, however they are written. */
export function planFleet(
  documents: FleetDocuments,
  { clusters: managed, registered, rules }: PresentFleet,
  { prune, reason, now }: PlanOptions,
): FleetPlan {
  const known = new Map(registered?.map((cluster) => [cluster.name, cluster]));
  const removed = prune ? [...known.values()].filter(({ name }) => !documents.names.includes(name)) : [];
  const left = managed.filter((name) => !removed.some((cluster) => cluster.name === name));
  const names = [...new Set([...left, ...documents.names])];
  const { policies, faults: unresolved } = resolvePolicies(documents, names);
  const faults = [...documents.faults, ...unresolved];
  if (prune && registered && documents.names.length === 0)
    faults.push(
      '--prune would remove all clusters: no document is of kind Cluster. Add one for each cluster.',
    );
  const registrations = documents.clusters.flatMap(({ where, name, access }): readonly RegistryAct[] => {
    if (!registered) {
      if (!managed.includes(name))
        faults.push(
          `${where}: it is not managed, and only the start of the service adds clusters. Remove the document, or add the cluster there.`,
        );
      return [];
    }
    const from = known.get(name);
    if (!from) return [{ kind: 'add', to: { name, access, addedAt: now } }];
    if (isDeepStrictEqual(from.access, access)) return [];
    if ([from.access.kind, access.kind].includes('agent'))
      faults.push(
        `${where}: spec.access changes an agent, whose evictions would be lost. Remove the cluster first.`,
      );
    return [{ kind: 'change', from, to: { ...from, access } }];
  });
  const acts = names.flatMap((cluster): FleetPlan['policies'] => {
    const current = rules.get(cluster)?.orders.policy;
    const text = policies.get(cluster)?.text;
    if (text === undefined)
      return prune && current && current.owner === undefined
        ? [{ kind: 'withdraw-policy', cluster, ...defined({ reason }) }]
        : [];
    const isSame = current && changedSettings(current.read, parsePolicyOnce(text)).length === 0;
    return isSame ? [] : [{ kind: 'apply-policy', cluster, text, ...defined({ reason }) }];
  });
  return {
    registrations: [...registrations, ...removed.map((from) => ({ kind: 'remove', from }) as const)],
    policies: acts,
    faults,
  };
}
