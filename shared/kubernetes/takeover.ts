import type { EpochMs } from '#shared/time/epoch-ms.ts';
import type { Takeover } from './api.ts';
import { fieldsOf, itemsOf, textOf } from './http/api-json.ts';

/** The custom resource of a `Takeover`. */
export const TAKEOVER_GROUP = 'taintward.dev';
export const TAKEOVER_VERSION = 'v1';
/** The name of the only takeover that counts. */
export const TAKEOVER_NAME = 'live';
export const TAKEOVER_PATH = `/apis/${TAKEOVER_GROUP}/${TAKEOVER_VERSION}/takeovers/${TAKEOVER_NAME}`;

/**
 * A heartbeat for proofs that keeps out none of today's taints. Kubernetes' clients accept no times before 1970, and a
 * proof also uses earlier times than this.
 */
export const NEVER_RENEWED: EpochMs = Date.UTC(2000, 0, 1);
/** Later heartbeats are ignored: Kubernetes has no time long after them by which they could be proven. */
const END_OF_TIME: EpochMs = Date.UTC(9000, 0, 1);

/** The default of `spec.lapseSeconds`. */
export const DEFAULT_LAPSE_SECONDS = 90;

export function projectTakeover(json: unknown): Takeover {
  const { metadata, spec } = fieldsOf(json);
  const { keys, lapseSeconds, heartbeat, aliveSince, withheld } = fieldsOf(spec);
  const [renewedAt, since] = [Date.parse(textOf(heartbeat)), Date.parse(textOf(aliveSince))];
  const renewed = renewedAt > NEVER_RENEWED && renewedAt < END_OF_TIME;
  const reason = textOf(withheld);
  return {
    resourceVersion: textOf(fieldsOf(metadata)['resourceVersion']),
    keys: itemsOf(keys).map(textOf),
    lapseMs: (typeof lapseSeconds === 'number' ? lapseSeconds : DEFAULT_LAPSE_SECONDS) * 1000,
    ...(renewed ? { heartbeat: renewedAt } : {}),
    ...(renewed && !Number.isNaN(since) ? { aliveSince: since } : {}),
    ...(reason === '' ? {} : { withheld: reason }),
  };
}

/** Taints with this time are kept out. The policy in `at-nodes.ts` has the same rule. */
export const isAlive = (
  { heartbeat = -Infinity, lapseMs }: Pick<Takeover, 'heartbeat' | 'lapseMs'>,
  at: EpochMs,
): boolean => Math.abs(at - heartbeat) < lapseMs;

/** Reports whether the takeover keeps the built-in controller from evicting, at a time of the API server's clock. */
export const isInForce = ({ withheld, ...takeover }: Takeover, at: EpochMs): boolean =>
  withheld === undefined && isAlive(takeover, at);

/** Returns the JSON merge patch that renews the heartbeat, if the takeover is unchanged since it was read. */
export function renewalPatch(takeover: Takeover, at: EpochMs): object {
  const aliveSince = isAlive(takeover, at) ? (takeover.aliveSince ?? at) : at;
  return {
    metadata: { resourceVersion: takeover.resourceVersion },
    spec: {
      heartbeat: new Date(at).toISOString(),
      aliveSince: new Date(aliveSince).toISOString(),
      withheld: null,
    },
  };
}

/** Records why the heartbeat is not renewed, if the takeover is unchanged since it was read. */
export function withheldPatch({ resourceVersion, heartbeat }: Takeover, withheld: string): object {
  const never = heartbeat === undefined ? { heartbeat: new Date(NEVER_RENEWED).toISOString() } : {};
  return { metadata: { resourceVersion }, spec: { ...never, withheld } };
}
