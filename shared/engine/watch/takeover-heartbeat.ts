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
import type { Proof } from './prover.ts';

/** Four of them fit into the usual lapse. */
export const HEARTBEAT_MS = 20_000;
/** A heartbeat that is so old was followed by none in time. */
const MISSING_MS = 1.5 * HEARTBEAT_MS;
/** Of what an answer is awaited before the first heartbeat: the time of the API server. */
const CLOCK_LOOKS = 3;
const CLOCK_LOOK_MS = 400;
/** So often it is proven anew that the takeover works, by writing a node by dry run. */
export const PROVEN_MS = 10 * 60_000;
/** What stands in the cluster where it is not the cluster's matter why. */
const REASON_ELSEWHERE =
  "the relay couldn't check whether evictions work: see takeover.heartbeat-suspended in its log";

export interface TakeoverHeartbeatDeps {
  readonly api: Pick<
    KubernetesApi,
    'getTakeover' | 'renewTakeover' | 'withholdTakeover' | 'tryTaints' | 'skewMs' | 'skews'
  >;
  readonly policy: () => Policy;
  readonly connectionState: () => RenewalInputs['connectionState'];
  /** Reports whether the relay holds the cluster's lease, and renewed it lately. */
  readonly holdsLease: () => boolean;
  /**
   * Why pods of nodes with these taint keys may not be evicted; `undefined`: nothing speaks against it. It may reject: that is not known
   * then. Asked only where all that costs nothing is as it ought to be.
   */
  readonly whyStalled: (keys: readonly string[]) => Promise<string | undefined>;
  /** Resolves with the time at which evictions were last proven to work. Rejects when that is unknown. Called last, when nothing else prevents renewal. */
  readonly prove: (signal: AbortSignal) => Promise<Proof>;
  /** Told each time what became of the heartbeat; `reason`: why it is withheld. */
  readonly told: (state: TakeoverState, reason?: unknown) => void;
  readonly clock: Clock;
  readonly log: Log;
}

/** Whether a cluster is taken over, and if so, whether it is told that somebody evicts there. */
export type TakeoverState = 'none' | 'renewed' | 'withheld';

/**
 * Says to a cluster, for as long as that is so, that Taintward evicts in the built-in controller's place: renews its
 * `takeovers/live`, where there is one and it is proven to work, until `signal` aborts. Never rejects: whoever hears nothing
 * for the lapse knows enough. What changes is logged.
 */
export async function keepTakeover(
  cluster: ClusterName,
  deps: TakeoverHeartbeatDeps,
  signal: AbortSignal,
): Promise<void> {
  const { log } = deps;
  let before: Outcome = { kind: 'none' };
  while (!signal.aborted) {
    const outcome: Outcome = await beat(before, deps, signal).catch(
      (error: unknown): Outcome => ({ kind: 'withheld', reason: error }),
    );
    if (signal.aborted) return;
    deps.told(outcome.kind, outcome.kind === 'withheld' ? outcome.reason : undefined);
    if (outcome.kind === 'renewed' && before.kind !== 'renewed')
      log.info('takeover.heartbeat-renewed', { cluster });
    if (outcome.kind === 'none' && before.kind !== 'none') log.info('takeover.ended', { cluster });
    if (outcome.kind === 'withheld' && !(before.kind === 'withheld' && isLike(outcome.reason, before.reason)))
      log.warn('takeover.heartbeat-suspended', { cluster, reason: outcome.reason });
    before = outcome;
    await pause(HEARTBEAT_MS, signal);
  }
}

type Outcome =
  | { readonly kind: 'none' }
  | { readonly kind: 'renewed'; readonly tried: TriedTakeover }
  | { readonly kind: 'withheld'; readonly reason: unknown };

/** A takeover of these keys and this lapse was seen to work. */
interface TriedTakeover extends Pick<Takeover, 'keys' | 'lapseMs'> {
  readonly age: Age;
}

async function beat(before: Outcome, deps: TakeoverHeartbeatDeps, signal: AbortSignal): Promise<Outcome> {
  const { api, clock } = deps;
  const beganAt = clock.now();
  let takeover: Takeover | undefined;
  try {
    takeover = await api.getTakeover();
  } catch (error) {
    // Nothing is withheld from a cluster that was not known to be taken over: lists and watches fail there, too, and tell so.
    if (before.kind === 'none') return before;
    throw error;
  }
  // One answer alone tells the time to the second and a bit.
  for (let looks = 1; takeover && api.skewMs === undefined && looks < CLOCK_LOOKS; looks++) {
    await pause(CLOCK_LOOK_MS, signal);
    takeover = await api.getTakeover();
  }
  if (!takeover) return { kind: 'none' };
  const { skewMs } = api;
  let reason: unknown = await whyNotAllowed(takeover, deps).catch((error: unknown) => error);
  let tried = before.kind === 'renewed' ? before.tried : undefined;
  if (reason === undefined && !(tried && isOf(takeover, tried))) {
    const { keys, lapseMs } = takeover;
    tried = { keys, lapseMs, age: new Age(clock) };
    reason = await disproof(api, takeover, { signal });
    // A first proof writes it.
    takeover = (await api.getTakeover()) ?? takeover;
  }
  const proof = reason === undefined ? await proofOf(deps, signal) : undefined;
  if (proof && 'unproven' in proof) reason = proof.unproven;
  // All of that took its time.
  if (reason === undefined && !deps.holdsLease()) reason = whyNotNow(takeover, deps);
  if (reason === undefined && tried && proof && 'asOf' in proof) {
    // The oldest proof counts.
    await api.renewTakeover(takeover, Math.min(beganAt, proof.asOf) + (skewMs ?? 0));
    return { kind: 'renewed', tried };
  }
  const noted = typeof reason === 'string' ? reason : REASON_ELSEWHERE;
  // Another region's relay may renew it: nobody notes anything before a heartbeat is missing.
  const { heartbeat = -Infinity, withheld } = takeover;
  const isMissing = clock.now() + (skewMs ?? 0) - heartbeat >= MISSING_MS;
  // Where it cannot be noted either, the lapse says it.
  if (isMissing && !isLike(noted, withheld))
    await api.withholdTakeover(takeover, noted).catch(() => undefined);
  return { kind: 'withheld', reason };
}

const proofOf = ({ prove }: TakeoverHeartbeatDeps, signal: AbortSignal): Promise<Proof> =>
  prove(signal).catch((error: unknown) => ({ unproven: error }));

/** Why the takeover may not be renewed, leaving aside whether it works; `undefined`: it may. Rejects when that is not known. */
const whyNotAllowed = async (takeover: Takeover, deps: TakeoverHeartbeatDeps): Promise<string | undefined> =>
  whyNotNow(takeover, deps) ?? (await deps.whyStalled(takeover.keys));

/** As much of that as is known without asking anybody. */
function whyNotNow({ keys }: Takeover, deps: TakeoverHeartbeatDeps): string | undefined {
  const { mode, virtualKeys, guard } = deps.policy();
  const [guarded, holdsLease] = [watchesDownNodes(guard), deps.holdsLease()];
  const { skewMs, skews } = deps.api;
  const clocksApart = apartText(skews, 'the relay');
  const connectionState = deps.connectionState();
  return renewalBlocker({
    mode,
    guarded,
    connectionState,
    keys,
    virtualKeys,
    holdsLease,
    skewMs,
    clocksApart,
  });
}

/** Whether this very takeover was tried, and not too long ago. */
const isOf = ({ keys, lapseMs }: Takeover, tried: TriedTakeover): boolean =>
  isDeepStrictEqual([keys, lapseMs], [tried.keys, tried.lapseMs]) && tried.age.atMostMs < PROVEN_MS;

/** Whether two reasons are the same but for numbers: for how long something is overdue is another one each time. */
const isLike = (one: unknown, other: unknown): boolean => gist(one) === gist(other);

const gist = (reason: unknown): string => errorMessage(reason).replaceAll(/\d+/g, '');
