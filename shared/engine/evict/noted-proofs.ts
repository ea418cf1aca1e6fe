import type { ClusterName } from '#shared/eviction/identity.ts';
import type { ProofNotes } from '#shared/state/proofs.ts';
import type { Log } from '#shared/telemetry/log.ts';
import { Age } from '#shared/time/age.ts';
import type { Clock } from '#shared/time/clock.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';

/** Time since the last probe after which proofs aren't needed. */
const ASKED_FOR_MS = 10 * 60_000;
/** Minimum interval between notes: a relay asks every 20 s, and an outage causes hundreds of passes. */
const NOTED_EACH_MS = 5_000;

export interface NotedProofsDeps {
  readonly notes: ProofNotes;
  readonly clock: Clock;
  readonly log: Log;
}

/**
 * Notes proofs that evictions work. A pass is noted only in a cluster whose probes this process carries out, and only
 * every few seconds, so a cluster that isn't taken over causes no cost. Never rejects: without the note, the relay
 * correctly concludes that it has no proof.
 */
export class NotedProofs {
  readonly #deps: NotedProofsDeps;
  readonly #probed = new Map<ClusterName, Age>();
  readonly #noted = new Map<ClusterName, Age>();

  constructor(deps: NotedProofsDeps) {
    this.#deps = deps;
  }

  async probed(cluster: ClusterName, sentAt: EpochMs, failure: string | undefined): Promise<void> {
    const { notes, clock, log } = this.#deps;
    const now = clock.now();
    this.#probed.set(cluster, new Age(clock));
    if (failure !== undefined) log.warn('takeover.probe-failed', { cluster, error: failure });
    await this.#note(cluster, () => notes.notedProbe(cluster, sentAt, now, failure));
  }

  async passed(cluster: ClusterName): Promise<void> {
    const { notes, clock } = this.#deps;
    if (!isYounger(this.#probed.get(cluster), ASKED_FOR_MS)) return;
    if (isYounger(this.#noted.get(cluster), NOTED_EACH_MS)) return;
    this.#noted.set(cluster, new Age(clock));
    await this.#note(cluster, () => notes.notedPass(cluster, clock.now()));
  }

  async #note(cluster: ClusterName, write: () => Promise<void>): Promise<void> {
    try {
      await write();
    } catch (error) {
      this.#deps.log.warn('takeover.probe-failed', { cluster, error });
    }
  }
}

const isYounger = (age: Age | undefined, ms: number): boolean => age !== undefined && age.atMostMs <= ms;
