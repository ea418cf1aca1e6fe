import { REGISTRY_POLL_MS } from '#shared/aws/relay/follow-registry.ts';
import { NODE_MAX_AGE_MS } from '#shared/engine/evict/evict-pod.ts';
import { MAX_HANDICAP_MS } from '#shared/engine/watch/fleet.ts';
import { LEASE_READ_MS } from '#shared/engine/watch/lease-manager.ts';
import { POLL_MS } from '#shared/engine/watch/rules-watch.ts';
import { retryWaitMs } from '#shared/eviction/retry.ts';
import { LEASE_TTL_MS } from '#shared/state/lease.ts';
import { RULES_MAX_AGE_MS } from '#shared/state/rules-store.ts';
import { scheduledTtl } from '#shared/state/stored.ts';
import { aRecord, NOW } from '#test/contracts/partition-builders.ts';
import { numberIn } from '../../entry-constant.ts';
import { MIB, SECOND_MS } from './stated.ts';

/*
 * Numbers that follow from several constants.
 */

export const roundedUp = (value: number, step: number): number => step * Math.ceil(value / step);

export const waitMs = (attempts: number, how = {}): number => retryWaitMs(attempts, 1, how);
export const FIRST_MS = waitMs(1);
export const FIRST_UNANSWERED_MS = waitMs(1, { outOfReach: true });
export const LAST_MS = waitMs(10_000);

/** Returns the last of the attempts between which the wait is at most that of the tenth. */
export const lastEarly = (how = {}): number =>
  Array.from({ length: 200 }, (_, index) => index + 1).findLast((nth) => waitMs(nth, how) <= waitMs(10)) ?? 0;

/** Time for which an eviction that failed for good is ignored. */
export const LEFT_ALONE_MS = scheduledTtl(aRecord({ dueAt: NOW, gaveUpAt: NOW }), NOW) * 1000 - NOW;

/** Time after which an eviction that every timer missed is recovered. */
export const MISSED_MS = scheduledTtl(aRecord({ dueAt: NOW }), NOW) * 1000 - NOW;

/** Time within which a stop, or another restriction, holds every delete. */
export const RESTRICTED_MS = roundedUp(RULES_MAX_AGE_MS + NODE_MAX_AGE_MS, SECOND_MS);

/** Time within which a relaxed rule takes effect. */
export const PERMITTED_MS = roundedUp(POLL_MS + RULES_MAX_AGE_MS, 5 * SECOND_MS);

/** Time without a leader after one died. */
export const FAILOVER_MS = roundedUp(LEASE_TTL_MS + LEASE_READ_MS + MAX_HANDICAP_MS, 5 * SECOND_MS);

/** Time within which a cluster that was registered is watched. */
export const WATCHED_MS = roundedUp(REGISTRY_POLL_MS + FAILOVER_MS, 10 * SECOND_MS);

/** Replicas and memory of the chart, as `kubectl apply -k` installs it. */
const DEPLOYMENT = 'deploy/in-cluster/deployment.yaml';
export const REPLICAS = numberIn(DEPLOYMENT, /^ {2}replicas: (\d+)$/m);
export const REQUESTED_BYTES = MIB * numberIn(DEPLOYMENT, /requests:\n.*\n +memory: (\d+)Mi$/m);
export const LIMIT_BYTES = MIB * numberIn(DEPLOYMENT, /limits:\n +memory: (\d+)Mi$/m);
