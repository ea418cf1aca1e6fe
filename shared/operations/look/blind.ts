import { CONDITIONS, type ConditionType } from '#shared/conditions/conditions.ts';
import { defined } from '#shared/defined.ts';
import type { ClusterName } from '#shared/eviction/identity.ts';
import type { Disconnection } from '#shared/explain/disconnection.ts';
import { type Fact, known } from '#shared/explain/known.ts';
import type { Clock } from '#shared/time/clock.ts';
import type { ContextFleet } from '../fleet/fleet.ts';
import { type Snapshot, type ViewedFleet, view } from './look.ts';
import { type FleetStatus, statusOf } from './status.ts';

/** Reasons why the stored state may be outdated, as sentences. `stalled`: why nothing is evicted at present. */
export interface Blindness {
  readonly warnings: readonly string[];
  readonly stalled?: string;
}

export const blindnessIn = (seen: Snapshot): Blindness => blindnessOf(statusOf(seen), seen);

function blindnessOf({ issues, unknown }: FleetStatus, seen: Snapshot): Blindness {
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
  if (type === 'lease-unavailable' && kind === 'local') return 'its lease cannot be renewed';
  if (type === 'store-failing') return 'decisions cannot be stored';
  return type === 'lease-expired' && kind === 'in-cluster' ? 'no replica holds the lease' : undefined;
}

export interface RelayStory extends Blindness {
  /** `undefined`: a relay is connected or connecting, or the fleet has none. */
  readonly disconnection: Fact<Disconnection | undefined>;
}

export async function relayStory(
  fleet: ViewedFleet | ContextFleet,
  cluster: ClusterName,
  clock: Clock,
): Promise<RelayStory> {
  if (fleet.kind === 'context') return { warnings: [], disconnection: known(undefined) };
  const seen = await view(fleet, [cluster], () => ({}), { clock, isWithoutNodes: true });
  const status = statusOf(seen);
  return { ...blindnessOf(status, seen), disconnection: disconnectionIn(status) };
}

function disconnectionIn({ clusters: [status] }: FleetStatus): RelayStory['disconnection'] {
  const { error, connection, lastContactAt, service } = status ?? {};
  if (error !== undefined) return { unknown: error.replace(/\.$/, '') };
  const isLost = connection === 'disconnected' || connection === 'never-connected';
  return known(isLost && service?.state !== 'syncing' ? defined({ since: lastContactAt }) : undefined);
}
