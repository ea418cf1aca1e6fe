import type { Takeover } from '#shared/kubernetes/api.ts';
import { fieldsOf, itemsOf, textOf } from '#shared/kubernetes/http/api-json.ts';
import { isAlive } from '#shared/kubernetes/takeover.ts';
import type { ClusterObjects } from '#shared/operations/fleet/cluster-objects.ts';
import type { Clock } from '#shared/time/clock.ts';
import { durationText } from '#shared/time/duration.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import { type Faults, type InstalledTakeover, installedTakeover } from './installed.ts';

/** State of a cluster's takeover. Times are from the API server's clock. */
export interface TakeoverState {
  readonly now: EpochMs;
  readonly nodes: InstalledTakeover | undefined;
  /** Problems, as sentences. */
  readonly alarms: readonly string[];
}

/** Reads the takeover of a cluster. Rejects with `ApiError`. */
export async function takeoverState(objects: ClusterObjects, clock: Clock): Promise<TakeoverState> {
  const taints = await downTaints(objects);
  // Read last, so that the heartbeat isn't older than the taints it is compared with.
  const nodes = await installedTakeover(objects);
  const now = clock.now() + objects.skewMs;
  const alarms = nodes
    ? [...faultTexts(nodes.faults), ...(nodes.live ? alarmsOf(nodes.live, taints, now) : [])]
    : [];
  return { now, nodes, alarms };
}

/** A NoExecute taint from the node controller. */
export interface DownTaint {
  readonly node: string;
  readonly key: string;
  readonly timeAdded: EpochMs;
}

async function downTaints(objects: ClusterObjects): Promise<readonly DownTaint[]> {
  const found: DownTaint[] = [];
  for await (const { metadata, spec } of objects.list('/api/v1/nodes'))
    for (const taint of itemsOf(fieldsOf(spec)['taints']).map(fieldsOf)) {
      const timeAdded = Date.parse(textOf(taint['timeAdded']));
      if (taint['effect'] !== 'NoExecute' || Number.isNaN(timeAdded)) continue;
      found.push({ node: textOf(fieldsOf(metadata)['name']), key: textOf(taint['key']), timeAdded });
    }
  return found;
}

const faultTexts = ({ missing, changed }: Faults): readonly string[] => [
  ...missing.map(
    (name) => `${name} is missing, so the takeover has no effect. Apply or release the takeover again.`,
  ),
  ...changed.map((name) => `${name} differs from this release. Apply the takeover again.`),
];

/** Returns the problems of a takeover, as sentences. */
export function alarmsOf(takeover: Takeover, taints: readonly DownTaint[], now: EpochMs): readonly string[] {
  const { heartbeat, aliveSince = Infinity, lapseMs, keys, withheld } = takeover;
  const alarms: string[] = [];
  if (withheld !== undefined) {
    const once = isAlive(takeover, now) ? ' once it expires' : '';
    alarms.push(`The heartbeat is suspended because ${withheld}. The built-in controller evicts${once}.`);
  } else if (heartbeat === undefined) {
    alarms.push(
      'No relay has ever renewed the heartbeat. Look for takeover.heartbeat-suspended in the log of the relay.',
    );
  }
  if (heartbeat !== undefined && heartbeat - now >= lapseMs) {
    alarms.push(
      'The heartbeat is in the future, so the takeover has no effect: the clock skew exceeds the heartbeat timeout.',
    );
  } else if (heartbeat !== undefined && !isAlive(takeover, now)) {
    alarms.push(`The heartbeat expired ${ago(heartbeat + lapseMs, now)}. The built-in controller evicts.`);
  }
  const slipped = taints.filter(
    ({ key, timeAdded }) =>
      keys.includes(key) && timeAdded >= aliveSince && timeAdded < (heartbeat ?? 0) + lapseMs,
  );
  for (const { node, key } of slipped)
    alarms.push(
      `Node ${node} got ${key}:NoExecute despite a current heartbeat: the admission policy does not work, or clocks differ.`,
    );
  return alarms;
}

/** Returns the age of a time from the same clock, as text. */
export const ago = (moment: EpochMs, now: EpochMs): string => `${durationText(now - moment)} ago`;
