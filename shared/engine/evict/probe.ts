import type { ClusterName } from '#shared/eviction/identity.ts';
import { PROBE_NODE, probeRef } from '#shared/eviction/probe.ts';
import { areApart, heldText } from '#shared/eviction/skew.ts';
import {
  EVICTING_PERMISSIONS,
  missingPermissions,
  permissionsNeededBy,
} from '#shared/kubernetes/permissions.ts';
import { errorMessage } from '#shared/text/error-message.ts';
import type { EvictDeps } from './evict-node.ts';

/**
 * Takes every step of an eviction except the eviction itself. It reads the cluster's rules and a node's stored state,
 * and asks the API server for a node and for the credentials' permissions. Clocks that differ hold every eviction.
 * Resolves with the first step that fails, in a few words; `undefined`: none does. Never rejects. Rules that hold every
 * pod fail no step: the built-in controller must not evict these pods either.
 */
export async function whyNotEvicting(
  cluster: ClusterName,
  { rules, store, clusters, clock }: Pick<EvictDeps, 'rules' | 'store' | 'clusters' | 'clock'>,
): Promise<string | undefined> {
  let step = "the cluster's rules can't be read";
  try {
    const { policy } = await rules(cluster);
    step = "the stored state can't be read";
    await store.load(probeRef(cluster), clock.now(), []);
    step = "the cluster can't be reached";
    const api = await clusters.api(cluster);
    await api.getNode(PROBE_NODE);
    step = "the API server doesn't say which permissions the credentials have";
    const needs = [
      ...EVICTING_PERMISSIONS,
      ...permissionsNeededBy(policy).flatMap(({ permissions }) => permissions),
    ];
    const missing = await missingPermissions(api, needs);
    if (missing.length > 0) return `the credentials lack the permission to ${missing.join(', ')}`;
    return areApart(api.skews) ? heldText(api.skews) : undefined;
  } catch (error) {
    return `${step}: ${errorMessage(error)}`;
  }
}
