import type { EpochMs } from '#shared/eviction/identity.ts';
import type { Takeover } from './api.ts';
import { fieldsOf, itemsOf, textOf } from './api-json.ts';

/** The custom resource that `Takeover` is of. */
export const TAKEOVER_GROUP = 'taintward.dev';
export const TAKEOVER_VERSION = 'v1';
/** The name of the only one that counts. */
export const TAKEOVER_NAME = 'live';
export const TAKEOVER_PATH = `/apis/${TAKEOVER_GROUP}/${TAKEOVER_VERSION}/takeovers/${TAKEOVER_NAME}`;

/** `spec.lapseSeconds` where it is not given. */
export const DEFAULT_LAPSE_SECONDS = 90;

/** The JSON of `takeovers/live` as a {@link Takeover}. */
export function projectTakeover(json: unknown): Takeover {
  const { metadata, spec } = fieldsOf(json);
  const { keys, lapseSeconds, heartbeat, aliveSince } = fieldsOf(spec);
  const [renewedAt, since] = [Date.parse(textOf(heartbeat)), Date.parse(textOf(aliveSince))];
  return {
    resourceVersion: textOf(fieldsOf(metadata)['resourceVersion']),
    keys: itemsOf(keys).map(textOf),
    lapseMs: (typeof lapseSeconds === 'number' ? lapseSeconds : DEFAULT_LAPSE_SECONDS) * 1000,
    ...(Number.isNaN(renewedAt) ? {} : { heartbeat: renewedAt }),
    ...(Number.isNaN(renewedAt) || Number.isNaN(since) ? {} : { aliveSince: since }),
  };
}

/** Whether it had a heartbeat lately enough, at a moment of the API server's clock. */
export const isAlive = ({ heartbeat = -Infinity, lapseMs }: Takeover, at: EpochMs): boolean =>
  at - heartbeat < lapseMs;

/** The JSON merge patch that renews it, if it is still as it was read. */
export function renewalPatch(takeover: Takeover, at: EpochMs): object {
  const aliveSince = isAlive(takeover, at) ? (takeover.aliveSince ?? at) : at;
  return {
    metadata: { resourceVersion: takeover.resourceVersion },
    spec: { heartbeat: new Date(at).toISOString(), aliveSince: new Date(aliveSince).toISOString() },
  };
}
