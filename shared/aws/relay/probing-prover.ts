import { deduplicationId, encodeDelta, messageGroupId } from '#shared/aws/delta-message.ts';
import type { Proof, Prover } from '#shared/engine/watch/ports.ts';
import type { ClusterName } from '#shared/eviction/identity.ts';
import { probeDelta, probeRef } from '#shared/eviction/probe.ts';
import type { ProofStore, StoredProofs } from '#shared/state/proofs.ts';
import type { QueueSender } from '#shared/state/sender.ts';
import { type Backoff, backoffMs } from '#shared/time/backoff.ts';
import { type Clock, stopwatchMs } from '#shared/time/clock.ts';
import { durationText } from '#shared/time/duration.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import { pause } from '#shared/time/pause.ts';

/** Pauses before each read of the proofs. Warm functions take some hundred milliseconds, cold ones some seconds. */
const READS_AFTER_MS = [500, 700, 1_300, 2_500, 3_000] as const;
/** Maximum of consecutive unanswered probes that are sent with each heartbeat. */
const MAX_UNANSWERED = 3;
/** Backoff of probes after `MAX_UNANSWERED`: where a function fails, each probe becomes a dead letter. */
export const PROBE_AGAIN: Backoff = { firstMs: 40_000, longestMs: 300_000 };
/** Maximum of unanswered probes to remember. An answer to an older probe arrives too late to renew a heartbeat. */
const MAX_REMEMBERED = 50;

export interface ProbingProverDeps {
  readonly nodeDeltas: QueueSender;
  readonly proofs: Pick<ProofStore, 'read' | 'tracedAt'>;
  readonly clock: Clock;
}

interface Probes {
  /** Send times of the unanswered probes, in order. */
  unanswered: readonly EpochMs[];
  /** Why the probe that was answered last failed. Absent: it succeeded. */
  failure?: string | undefined;
  /** The latest time for which evictions are proven to work. `isNews`: not reported yet. */
  proven?: { readonly asOf: EpochMs; readonly isNews: boolean };
  /** When the next probe may be sent, by the stopwatch. */
  nextAtMs: number;
}

/**
 * Sends probes through the path of evictions, and reads the results from the table. Only this process's clock counts: a
 * probe is identified by its sending time, and a pass is at least as recent as the previous read, which did not include
 * it.
 */
export class ProbingProver implements Prover {
  readonly #deps: ProbingProverDeps;
  readonly #clusters = new Map<ClusterName, Probes>();
  #sequence = 0;

  constructor(deps: ProbingProverDeps) {
    this.#deps = deps;
  }

  async prove(cluster: ClusterName, signal: AbortSignal): Promise<Proof> {
    const { proofs, clock } = this.#deps;
    const probes = this.#probesOf(cluster);
    const isSent = stopwatchMs(clock) >= probes.nextAtMs;
    const refusal = isSent ? await this.#send(cluster, probes) : undefined;
    if (refusal !== undefined) return { unproven: `the node-deltas queue rejects probes: ${refusal}` };
    let before: { readonly at: EpochMs; readonly passes: number } | undefined;
    for (const waitMs of isSent ? READS_AFTER_MS : [0]) {
      await pause(waitMs, signal);
      const at = clock.now();
      const found = await proofs.read(cluster);
      learn(probes, found);
      if (before && before.passes !== found.passes) learnPass(probes, before.at);
      // Accept a late answer too: in a storm, the next answer would arrive no sooner.
      if (probes.proven?.isNews || probes.unanswered.length === 0 || signal.aborted) break;
      before = { at, passes: found.passes };
    }
    return this.#conclude(cluster, probes);
  }

  #probesOf(cluster: ClusterName): Probes {
    const known = this.#clusters.get(cluster);
    if (known) return known;
    const probes: Probes = { unanswered: [], nextAtMs: -Infinity };
    this.#clusters.set(cluster, probes);
    return probes;
  }

  async #send(cluster: ClusterName, probes: Probes): Promise<string | undefined> {
    const { nodeDeltas, clock } = this.#deps;
    this.#sequence += 1;
    const sentAt = clock.now();
    const isTraced = probes.unanswered.length > 0;
    const delta = probeDelta(cluster, { sentAt, sequence: this.#sequence, isTraced });
    const message = {
      body: encodeDelta(delta),
      groupId: messageGroupId(probeRef(cluster)),
      deduplicationId: deduplicationId(delta),
    };
    const [failure] = await nodeDeltas.send([message]);
    if (failure) return failure.reason;
    probes.unanswered = [...probes.unanswered, sentAt].slice(-MAX_REMEMBERED);
    const excess = probes.unanswered.length - MAX_UNANSWERED;
    if (excess > 0) probes.nextAtMs = stopwatchMs(clock) + backoffMs(excess, PROBE_AGAIN);
    return undefined;
  }

  async #conclude(cluster: ClusterName, probes: Probes): Promise<Proof> {
    const { proven, failure, unanswered } = probes;
    if (failure !== undefined && unanswered.length <= 1)
      return { unproven: `evict can't evict pods: ${failure}` };
    if (!proven?.isNews) return { unproven: await this.#stage(cluster, probes) };
    probes.proven = { asOf: proven.asOf, isNews: false };
    return { asOf: proven.asOf };
  }

  async #stage(cluster: ClusterName, { unanswered }: Probes): Promise<string> {
    const { proofs, clock } = this.#deps;
    const [first = clock.now(), second] = unanswered;
    const sent = `a probe of evictions, sent ${durationText(clock.now() - first)} ago,`;
    if (second === undefined) return `${sent} isn't answered yet`;
    const tracedAt = await proofs.tracedAt(cluster);
    return tracedAt !== undefined && unanswered.includes(tracedAt)
      ? `${sent} isn't answered: the delta function sends probes on, but evict doesn't answer`
      : `${sent} isn't answered: the delta function doesn't send probes on`;
  }
}

/** A pass that the read at `asOf` did not include yet. It proves nothing while a probe reports a failure. */
function learnPass(probes: Probes, asOf: EpochMs): void {
  if (probes.failure !== undefined || probes.unanswered.length === 0) return;
  probes.proven = { asOf, isNews: true };
  // Answers to earlier probes would prove less.
  probes.unanswered = probes.unanswered.slice(-1);
  probes.nextAtMs = -Infinity;
}

/** Records an answer to a probe of this process: the latest answer stands for all earlier probes. */
function learn(probes: Probes, { probe }: StoredProofs): void {
  if (!probe) return;
  const index = probes.unanswered.indexOf(probe.sentAt);
  if (index < 0) return;
  probes.unanswered = probes.unanswered.slice(index + 1);
  probes.failure = probe.failure;
  probes.nextAtMs = -Infinity;
  if (probe.failure === undefined) probes.proven = { asOf: probe.sentAt, isNews: true };
}
