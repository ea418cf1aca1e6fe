import { CONDITIONS, type ConditionType } from '#shared/conditions/conditions.ts';
import { defined } from '#shared/defined.ts';
import type { ClusterName } from '#shared/eviction/identity.ts';
import type { Store } from '#shared/state/store.ts';
import type { Clock } from '#shared/time/clock.ts';
import { type ViewedFleet, view } from './look.ts';
import { type FleetStatus, statusOf } from './status.ts';

/** Reasons why an answer by the stored state may be outdated: changes of clusters may go unnoticed. */
export interface Blindness {
  /** Sentences. */
  readonly warnings: readonly string[];
  /** Why nothing is evicted at present. Absent: due pods are evicted. */
  readonly stalled?: string;
}

export const blindWarnings = ({
  issues,
  unknown,
}: Pick<FleetStatus, 'issues' | 'unknown'>): readonly string[] => [
  ...issues
    .filter(({ type }) => CONDITIONS[type].isBlind)
    .map(({ cluster, message }) => (cluster === undefined ? message : `${cluster}: ${message}`)),
  ...unknown,
];

const STALLED: Readonly<Partial<Record<ConditionType, string>>> = {
  'not-running': 'no npm start runs',
  'not-responding': 'npm start does not respond',
  'store-failing': 'decisions cannot be stored',
};
const NO_NODES: Pick<Store, 'load' | 'taintedNodes'> = {
  load: async (ref) => ({ ref, revision: 0, node: undefined, scheduled: new Map(), ended: new Map() }),
  async *taintedNodes() {},
};

/** Reads no pending evictions, on which none of these reasons depends. */
export async function blindnessOf(
  fleet: ViewedFleet,
  cluster: ClusterName,
  clock: Clock,
): Promise<Blindness> {
  const seen = await view({ ...fleet, store: NO_NODES }, [cluster], () => ({}), { clock });
  const status = statusOf(seen);
  // On AWS, due pods are evicted without a relay.
  const byLease = fleet.kind === 'in-cluster' ? { 'lease-expired': 'no replica holds the lease' } : {};
  const [stalled] = status.issues.flatMap(({ type }) => ({ ...STALLED, ...byLease })[type] ?? []);
  return { warnings: blindWarnings(status), ...defined({ stalled }) };
}
