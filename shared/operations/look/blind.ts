import { CONDITIONS, type ConditionType } from '#shared/conditions/conditions.ts';
import { defined } from '#shared/defined.ts';
import type { ClusterName } from '#shared/eviction/identity.ts';
import type { Clock } from '#shared/time/clock.ts';
import type { ContextFleet } from '../fleet/fleet.ts';
import { type Snapshot, type ViewedFleet, view } from './look.ts';
import { statusOf } from './status.ts';

/** Reasons why the stored state may be outdated, as sentences. `stalled`: why nothing is evicted at present. */
export interface Blindness {
  readonly warnings: readonly string[];
  readonly stalled?: string;
}

export function blindnessIn(seen: Snapshot): Blindness {
  const { issues, unknown } = statusOf(seen);
  const blind = issues.filter(({ type }) => CONDITIONS[type].isBlind);
  const texts = blind.map(
    ({ cluster, message }) => `${cluster === undefined ? '' : `${cluster}: `}${message}`,
  );
  const [stalled] = blind.flatMap(({ type }) => stallOf(type, seen) ?? []);
  return { warnings: [...texts, ...unknown], ...defined({ stalled }) };
}

/** On AWS, due pods are evicted without a relay. */
function stallOf(type: ConditionType, { kind }: Snapshot): string | undefined {
  if (type === 'not-running') return 'no npm start runs';
  if (type === 'not-responding') return 'npm start does not respond';
  if (type === 'store-failing') return 'decisions cannot be stored';
  return type === 'lease-expired' && kind === 'in-cluster' ? 'no replica holds the lease' : undefined;
}

export const blindnessOf = async (
  fleet: ViewedFleet | ContextFleet,
  cluster: ClusterName,
  clock: Clock,
): Promise<Blindness> =>
  fleet.kind === 'context'
    ? { warnings: [] }
    : blindnessIn(await view(fleet, [cluster], () => ({}), { clock, isWithoutNodes: true }));
