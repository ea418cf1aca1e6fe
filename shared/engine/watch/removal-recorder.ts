import type { ClusterName } from '#shared/eviction/identity.ts';
import type { GonePod, History } from '#shared/state/history.ts';
import type { Log } from '#shared/telemetry/log.ts';
import { type Backoff, backoffMs } from '#shared/time/backoff.ts';
import { pause } from '#shared/time/pause.ts';

/** Removals within this time are written together: pods that are evicted together are usually removed together. */
export const GATHER_MS = 2_000;
const BACKOFF: Backoff = { firstMs: 2_000, longestMs: 60_000 };
/**
 * Maximum removals that wait. While the table is unavailable, the history has gaps, but no relay runs out of memory.
 */
const MAX_WAITING = 20_000;

export interface RemovalRecorderDeps {
  readonly history: Pick<History, 'noteGone'>;
  readonly log: Log;
  /** Called after each write; with an error, if it failed and is retried. */
  readonly noted: (error?: unknown) => void;
  /** Aborts when the lease is no longer held: removals that were seen by then are written immediately. */
  readonly signal: AbortSignal;
}

/** Writes to the history of one cluster when evicted pods were removed. */
export class RemovalRecorder {
  readonly #cluster: ClusterName;
  readonly #deps: RemovalRecorderDeps;
  #waiting: GonePod[] = [];
  #writing: Promise<void> | undefined;

  constructor(cluster: ClusterName, deps: RemovalRecorderDeps) {
    this.#cluster = cluster;
    this.#deps = deps;
  }

  add(pods: readonly GonePod[]): void {
    this.#waiting = [...this.#waiting, ...pods].slice(-MAX_WAITING);
    if (this.#waiting.length > 0) this.#writing ??= this.#write();
  }

  /** Resolves when the waiting removals are written, or the last attempt failed. Never rejects. */
  async written(): Promise<void> {
    await this.#writing;
  }

  async #write(): Promise<void> {
    const { history, log, noted, signal } = this.#deps;
    for (let failures = 0; this.#waiting.length > 0; ) {
      await pause(failures === 0 ? GATHER_MS : backoffMs(failures, BACKOFF), signal);
      const pods = this.#waiting;
      this.#waiting = [];
      try {
        await history.noteGone(this.#cluster, pods);
        noted();
        failures = 0;
      } catch (error) {
        log.warn('history.write-failed', { cluster: this.#cluster, pods: pods.length, error });
        noted(error);
        if (signal.aborted) break;
        failures += 1;
        this.#waiting = [...pods, ...this.#waiting].slice(-MAX_WAITING);
      }
    }
    this.#writing = undefined;
  }
}
