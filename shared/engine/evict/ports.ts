import type { Timers } from '#shared/engine/timers.ts';
import type { NodeRef, PodUid } from '#shared/eviction/identity.ts';
import type { Permits } from '#shared/state/permits.ts';
import type { RateLimiter } from '#shared/state/rate-limiter.ts';
import type { RulesReader } from '#shared/state/rules-store.ts';
import type { Store } from '#shared/state/store.ts';
import type { Log } from '#shared/telemetry/log.ts';
import type { EvictionMetrics } from '#shared/telemetry/metrics.ts';
import type { Clock } from '#shared/time/clock.ts';

/** Keeps a copy of evictions of a node that failed, with the error. */
export type SetAside = (ref: NodeRef, pods: readonly PodUid[], reason: string) => Promise<void>;

/** What a pass needs of the world. */
export interface PassDeps {
  readonly store: Store;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: EvictionMetrics;
  /** What governs a cluster; with a look's age, at most a second old. */
  readonly rules: RulesReader;
  readonly rates: RateLimiter;
  readonly permits: Permits;
  readonly timers: Timers;
  /** Keeps a copy of failed evictions for an operator to redrive. Absent: the store alone keeps them. */
  readonly setAside?: SetAside;
}
