import type { ClusterName } from '#shared/eviction/identity.ts';
import { type Standing, watchesDownNodes, whyNotRenew } from '#shared/eviction/may-renew.ts';
import type { Policy } from '#shared/eviction/policy.ts';
import type { KubernetesApi } from '#shared/kubernetes/api.ts';
import type { Log } from '#shared/telemetry/log.ts';
import type { Clock } from '#shared/time/clock.ts';
import { pause } from '#shared/time/pause.ts';

/** Four of them fit into the usual lapse. */
export const HEARTBEAT_MS = 20_000;
/** Of what an answer is awaited before the first heartbeat: the time of the API server. */
const CLOCK_LOOKS = 3;
const CLOCK_LOOK_MS = 400;

export interface TakeoverHeartbeatDeps {
  readonly api: Pick<KubernetesApi, 'getTakeover' | 'renewTakeover' | 'skewMs'>;
  readonly policy: () => Policy;
  readonly hearing: () => Standing['hearing'];
  /** For how long the longest overdue eviction on nodes with these taint keys is due, ms. It may reject: it is not known then. */
  readonly overdueMs: (keys: readonly string[]) => Promise<number>;
  /** Told each time what became of the heartbeat. */
  readonly told: (state: TakeoverState) => void;
  readonly clock: Clock;
  readonly log: Log;
}

/** Whether a cluster is taken over, and if so, whether it is told that somebody evicts there. */
export type TakeoverState = 'none' | 'renewed' | 'withheld';

/**
 * Says to a cluster, for as long as that is so, that Taintward evicts in the built-in controller's place: renews its
 * `takeovers/live`, where there is one, until `signal` aborts. Never rejects: whoever hears nothing for the lapse knows
 * enough. What changes is logged.
 */
export async function keepTakeover(
  cluster: ClusterName,
  deps: TakeoverHeartbeatDeps,
  signal: AbortSignal,
): Promise<void> {
  const { log } = deps;
  let before: Outcome = { kind: 'none' };
  while (!signal.aborted) {
    const outcome = await beat(deps, signal).catch(
      (error: unknown): Outcome => ({ kind: 'withheld', reason: error }),
    );
    if (signal.aborted) return;
    deps.told(outcome.kind);
    if (outcome.kind === 'renewed' && before.kind !== 'renewed') log.info('takeover.renewed', { cluster });
    if (outcome.kind === 'none' && before.kind !== 'none') log.info('takeover.ended', { cluster });
    if (outcome.kind === 'withheld' && before.kind !== 'withheld')
      log.warn('takeover.withheld', { cluster, reason: outcome.reason });
    before = outcome;
    await pause(HEARTBEAT_MS, signal);
  }
}

type Outcome =
  | { readonly kind: 'none' | 'renewed' }
  | { readonly kind: 'withheld'; readonly reason: unknown };

async function beat(deps: TakeoverHeartbeatDeps, signal: AbortSignal): Promise<Outcome> {
  const { api, clock } = deps;
  // It says what was so by then.
  const asOf = clock.now();
  let takeover = await api.getTakeover();
  // One answer alone tells the time to the second and a bit.
  for (let looks = 1; takeover && api.skewMs === undefined && looks < CLOCK_LOOKS; looks++) {
    await pause(CLOCK_LOOK_MS, signal);
    takeover = await api.getTakeover();
  }
  if (!takeover) return { kind: 'none' };
  const { keys } = takeover;
  const { skewMs } = api;
  const overdueMs = await deps.overdueMs(keys);
  const { mode, virtualKeys, guard } = deps.policy();
  const guarded = watchesDownNodes(guard);
  const hearing = deps.hearing();
  const reason = whyNotRenew({ mode, guarded, hearing, keys, virtualKeys, overdueMs, skewMs });
  if (reason !== undefined) return { kind: 'withheld', reason };
  await api.renewTakeover(takeover, asOf + (skewMs ?? 0));
  return { kind: 'renewed' };
}
