import { isDeepStrictEqual } from 'node:util';
import type { ClusterName } from '#shared/eviction/identity.ts';
import type { Policy } from '#shared/eviction/policy.ts';
import { type RenewalInputs, renewalBlocker, watchesDownNodes } from '#shared/eviction/renewal-blocker.ts';
import { apartText } from '#shared/eviction/skew.ts';
import type { KubernetesApi, Takeover } from '#shared/kubernetes/api.ts';
import { disproof } from '#shared/kubernetes/takeover-proof.ts';
import type { Log } from '#shared/telemetry/log.ts';
import { errorMessage } from '#shared/text/error-message.ts';
import { Age } from '#shared/time/age.ts';
import type { Clock } from '#shared/time/clock.ts';
import { pause } from '#shared/time/pause.ts';
import type { Proof } from './ports.ts';

/** Interval between heartbeats. Four fit into the usual heartbeat timeout. */
export const HEARTBEAT_MS = 20_000;
/** Interval of the search for a takeover while the policy has no key for one, without which there is no heartbeat. */
export const UNEXPECTED_MS = 5 * 60_000;
/** A heartbeat of this age has had no successor in time. */
export const MISSING_MS = 1.5 * HEARTBEAT_MS;
/** Before the first heartbeat, so many answers are awaited at most to learn the API server's time. */
const CLOCK_READS = 3;
const CLOCK_READ_MS = 400;
/** Interval at which the takeover is again proven to work, by dry-run writes to a node. */
export const PROVEN_MS = 10 * 60_000;
/**
 * Interval at which one dry run is repeated: status reports a deleted or changed object of the takeover in a minute.
 */
export const CHECKED_MS = 2 * HEARTBEAT_MS;
const GONE =
  'takeovers/live is gone, but the policy still has its keys in treatAsNoExecute: apply the takeover again, or remove the keys';
/** The reason that the cluster shows if the real one lies outside the cluster. */
const REASON_ELSEWHERE =
  "the relay couldn't check whether evictions work: see takeover.heartbeat-suspended in its log";

export interface TakeoverHeartbeatDeps {
  readonly api: Pick<
    KubernetesApi,
    'getTakeover' | 'renewTakeover' | 'withholdTakeover' | 'tryTaints' | 'skewMs' | 'skews'
  >;
  readonly policy: () => Policy;
  readonly connectionState: () => RenewalInputs['connectionState'];
  readonly holdsLease: () => boolean;
  /**
   * Why pods of nodes with these keys may not be evicted; `undefined`: nothing prevents it. Rejects when unknown.
   * Called only after all free checks pass.
   */
  readonly whyStalled: (keys: readonly string[]) => Promise<string | undefined>;
  /** When evictions were last proven to work; rejects when unknown. Called last, when nothing else prevents renewal. */
  readonly prove: (signal: AbortSignal) => Promise<Proof>;
  /** Called after each attempt with the state of the heartbeat; `reason`: why it is suspended. */
  readonly onState: (state: TakeoverState, reason?: unknown) => void;
  readonly clock: Clock;
  readonly log: Log;
}

export type TakeoverState = 'none' | 'renewed' | 'withheld';

/**
 * Renews the heartbeat of `takeovers/live` while Taintward is proven to evict in the built-in controller's place, until
 * `signal` aborts. Never rejects: without heartbeats, the takeover lapses after its timeout.
 */
export async function keepTakeover(
  cluster: ClusterName,
  deps: TakeoverHeartbeatDeps,
  signal: AbortSignal,
): Promise<void> {
  const { clock, log } = deps;
  let before = NONE;
  while (!signal.aborted) {
    const outcome: Outcome = await beat(before, deps, signal).catch(
      (error: unknown): Outcome => ({ kind: 'withheld', keys: before.keys, reason: error }),
    );
    if (signal.aborted) return;
    deps.onState(outcome.kind, outcome.kind === 'withheld' ? outcome.reason : undefined);
    if (outcome.kind === 'renewed' && before.kind !== 'renewed')
      log.info('takeover.heartbeat-renewed', { cluster });
    if (outcome.kind === 'none' && before.kind !== 'none') log.info('takeover.ended', { cluster });
    if (outcome.kind === 'withheld' && !(before.kind === 'withheld' && isLike(outcome.reason, before.reason)))
      log.warn('takeover.heartbeat-suspended', { cluster, reason: outcome.reason });
    before = outcome;
    const searched = new Age(clock);
    const isExpected = () => outcome.kind !== 'none' || deps.policy().treatAsNoExecute.length > 0;
    do await pause(HEARTBEAT_MS, signal);
    while (!signal.aborted && !isExpected() && searched.atLeastMs < UNEXPECTED_MS);
  }
}

type Outcome = Pick<Takeover, 'keys'> &
  (
    | { readonly kind: 'none' }
    | { readonly kind: 'renewed'; readonly tried: TriedTakeover }
    | { readonly kind: 'withheld'; readonly reason: unknown }
  );

const NONE: Outcome = { kind: 'none', keys: [] };

interface TriedTakeover extends Pick<Takeover, 'keys' | 'lapseMs'> {
  readonly age: Age;
  /** Since the last dry run. */
  readonly checked: Age;
}

async function beat(before: Outcome, deps: TakeoverHeartbeatDeps, signal: AbortSignal): Promise<Outcome> {
  const { api, clock } = deps;
  const beganAt = clock.now();
  let takeover: Takeover | undefined;
  try {
    takeover = await api.getTakeover();
  } catch (error) {
    // A cluster that was not known to be taken over has no heartbeat to suspend. Its lists and watches fail, too, and
    // report that.
    if (before.kind === 'none') return before;
    throw error;
  }
  // A single answer shows the API server's time only to a bit more than a second.
  for (let reads = 1; takeover && api.skewMs === undefined && reads < CLOCK_READS; reads++) {
    await pause(CLOCK_READ_MS, signal);
    takeover = await api.getTakeover();
  }
  if (!takeover) {
    const isReliedOn = before.keys.some((key) => deps.policy().treatAsNoExecute.includes(key));
    return isReliedOn ? { kind: 'withheld', keys: before.keys, reason: GONE } : NONE;
  }
  const { skewMs } = api;
  let reason: unknown = await whyNotAllowed(takeover, deps).catch((error: unknown) => error);
  let tried = before.kind === 'renewed' ? before.tried : undefined;
  const proven = tried && isOf(takeover, tried) ? tried.age : undefined;
  if (reason === undefined && !(proven && tried && tried.checked.atMostMs < CHECKED_MS)) {
    const { keys, lapseMs } = takeover;
    const checked = new Age(clock);
    tried = { keys, lapseMs, age: proven ?? checked, checked };
    reason = await disproof(api, takeover, { onlyFresh: proven !== undefined, signal });
    // The first proof writes the takeover.
    if (!proven) takeover = (await api.getTakeover()) ?? takeover;
  }
  const proof = reason === undefined ? await proofOf(deps, signal) : undefined;
  if (proof && 'unproven' in proof) reason = proof.unproven;
  // All these steps took time.
  if (reason === undefined && !deps.holdsLease()) reason = whyNotNow(takeover, deps);
  if (reason === undefined && tried && proof && 'asOf' in proof) {
    // The oldest proof counts.
    await api.renewTakeover(takeover, Math.min(beganAt, proof.asOf) + (skewMs ?? 0));
    return { kind: 'renewed', keys: tried.keys, tried };
  }
  const noted = typeof reason === 'string' ? reason : REASON_ELSEWHERE;
  // Another region's relay may renew it, so the reason is written only after a heartbeat is missing.
  const { heartbeat = -Infinity, withheld } = takeover;
  const isMissing = clock.now() + (skewMs ?? 0) - heartbeat >= MISSING_MS;
  // If the reason can't be written either, the takeover lapses by its timeout.
  if (isMissing && !isLike(noted, withheld))
    await api.withholdTakeover(takeover, noted).catch(() => undefined);
  return { kind: 'withheld', keys: takeover.keys, reason };
}

const proofOf = ({ prove }: TakeoverHeartbeatDeps, signal: AbortSignal): Promise<Proof> =>
  prove(signal).catch((error: unknown) => ({ unproven: error }));

/** Why the takeover may not be renewed, apart from whether it works; `undefined`: it may. Rejects when unknown. */
const whyNotAllowed = async (takeover: Takeover, deps: TakeoverHeartbeatDeps): Promise<string | undefined> =>
  whyNotNow(takeover, deps) ?? (await deps.whyStalled(takeover.keys));

/** The part of that which is known without any request. */
function whyNotNow({ keys }: Takeover, deps: TakeoverHeartbeatDeps): string | undefined {
  const policy = deps.policy();
  return renewalBlocker({
    ...policy,
    keys,
    guarded: watchesDownNodes(policy.guard),
    connectionState: deps.connectionState(),
    holdsLease: deps.holdsLease(),
    skewMs: deps.api.skewMs,
    clocksApart: apartText(deps.api.skews, 'the relay'),
  });
}

const isOf = ({ keys, lapseMs }: Takeover, tried: TriedTakeover): boolean =>
  isDeepStrictEqual([keys, lapseMs], [tried.keys, tried.lapseMs]) && tried.age.atMostMs < PROVEN_MS;

/** Reports whether two reasons differ only in numbers: the time that a pod is overdue changes each time. */
const isLike = (one: unknown, other: unknown): boolean => gist(one) === gist(other);

const gist = (reason: unknown): string => errorMessage(reason).replaceAll(/\d[\ddhms]*/g, '');
