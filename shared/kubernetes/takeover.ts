import type { EpochMs } from '#shared/time/epoch-ms.ts';
import type { Takeover } from './api.ts';
import { fieldsOf, itemsOf, textOf } from './http/api-json.ts';

/** The custom resource that `Takeover` is of. */
export const TAKEOVER_GROUP = 'taintward.dev';
export const TAKEOVER_VERSION = 'v1';
/** The name of the only one that counts. */
export const TAKEOVER_NAME = 'live';
export const TAKEOVER_PATH = `/apis/${TAKEOVER_GROUP}/${TAKEOVER_VERSION}/takeovers/${TAKEOVER_NAME}`;

/**
 * The heartbeat of a takeover that nobody has renewed yet: a proof needs a heartbeat that the policy goes by, and this one keeps
 * no taint of today out. Moments before 1970 are none to Kubernetes' clients, and a proof goes back from here, too.
 */
export const NEVER_RENEWED: EpochMs = Date.UTC(2000, 0, 1);
/** A heartbeat from here on is none: there is no moment of Kubernetes long after it by which it could be proven. */
const END_OF_TIME: EpochMs = Date.UTC(9000, 0, 1);

/** `spec.lapseSeconds` where it is not given. */
export const DEFAULT_LAPSE_SECONDS = 90;

/** The JSON of `takeovers/live` as a {@link Takeover}. */
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

/**
 * Whether its heartbeat is near enough to a moment of the API server's clock: taints of that moment are kept out then. The
 * same rule as the policy's, in `at-nodes.ts`.
 */
export const isAlive = (
  { heartbeat = -Infinity, lapseMs }: Pick<Takeover, 'heartbeat' | 'lapseMs'>,
  at: EpochMs,
): boolean => Math.abs(at - heartbeat) < lapseMs;

/** Whether the built-in controller rests because of it, at a moment of the API server's clock. */
export const isInForce = ({ withheld, ...takeover }: Takeover, at: EpochMs): boolean =>
  withheld === undefined && isAlive(takeover, at);

/** The JSON merge patch that renews it, if it is still as it was read. */
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

/** The JSON merge patch that says why it is not renewed, if it is still as it was read. */
export function withheldPatch({ resourceVersion, heartbeat }: Takeover, withheld: string): object {
  const never = heartbeat === undefined ? { heartbeat: new Date(NEVER_RENEWED).toISOString() } : {};
  return { metadata: { resourceVersion }, spec: { ...never, withheld } };
}
