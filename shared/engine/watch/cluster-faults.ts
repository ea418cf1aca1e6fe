import { ApiError } from '#shared/kubernetes/http/api-error.ts';
import { FAULT_TYPES, type Fault, MAX_FAULT_TEXT, MAX_FAULTS } from '#shared/state/fault.ts';
import { errorMessage } from '#shared/text/error-message.ts';
import { escapeForDisplay } from '#shared/text/escape-for-display.ts';
import { Age } from '#shared/time/age.ts';
import type { Clock } from '#shared/time/clock.ts';

export const STORE_FAILING = { type: 'store-failing' } as const;
/** Duration of the fault after a failed write, if the next attempt isn't known to follow soon. */
export const UNSTORED_MS = 10 * 60_000;

/** A cluster has one fault of each kind at a time. */
export type FaultKind = Pick<Fault, 'type' | 'resource'>;

export interface Notice {
  /** Source of the notice; each source ends its own notice. Absent: there is a single source. */
  readonly by?: string;
  /** Duration after which the notice ends by itself. Absent: it lasts until {@link ClusterFaults.end}. */
  readonly lastsMs?: number;
}

interface Noticed extends Fault {
  readonly count: number;
  /** The notices that may still be active, by source. */
  readonly notices: Map<string, { readonly age: Age; readonly lastsMs: number }>;
}

/**
 * The current faults of one cluster, for its lease. A fault ends when no source's notice is active: of a hundred
 * watches, all that failed have to succeed.
 */
export class ClusterFaults {
  readonly #clock: Clock;
  readonly #noticed = new Map<string, Noticed>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Notes a fault, or that it continues; the last error is reported. */
  begin(
    kind: FaultKind,
    error: unknown,
    { by: source = '', lastsMs = Number.POSITIVE_INFINITY }: Notice = {},
  ): void {
    const key = keyOf(kind);
    const found = this.#noticed.get(key);
    const before = found && stands(found) ? found : undefined;
    const notices: Noticed['notices'] = before?.notices ?? new Map();
    notices.set(source, { age: new Age(this.#clock), lastsMs });
    this.#noticed.set(key, {
      ...kind,
      since: before?.since ?? this.#clock.now(),
      error: escapeForDisplay(errorMessage(error), MAX_FAULT_TEXT - 1),
      ...(error instanceof ApiError && error.status !== 0 ? { status: error.status } : {}),
      count: (before?.count ?? 0) + 1,
      notices,
    });
  }

  end(kind: FaultKind, source = ''): void {
    // Return early: this is called for each event of a watch.
    if (this.#noticed.size === 0) return;
    const key = keyOf(kind);
    const found = this.#noticed.get(key);
    if (found?.notices.delete(source) && found.notices.size === 0) this.#noticed.delete(key);
  }

  /** Notes an outcome: a failure or, without an error, a success. */
  note(kind: FaultKind, error: unknown, notice: Notice = {}): void {
    if (error === undefined) this.end(kind, notice.by);
    else this.begin(kind, error, notice);
  }

  clear(): void {
    this.#noticed.clear();
  }

  /** The faults, the most urgent first, as many as a lease holds. */
  get list(): readonly Fault[] {
    const rank = ({ type }: Fault) => FAULT_TYPES.indexOf(type);
    return [...this.#noticed.values()]
      .filter(stands)
      .sort((a, b) => rank(a) - rank(b))
      .slice(0, MAX_FAULTS)
      .map(({ notices: _notices, count, ...fault }) =>
        fault.type === 'built-in-evicts' ? { ...fault, count } : fault,
      );
  }
}

const keyOf = ({ type, resource }: FaultKind): string => `${type} ${resource ?? ''}`;

/** Uses the stopwatch, so that setting the clock doesn't end a fault unseen. */
const stands = ({ notices }: Noticed): boolean =>
  notices.values().some(({ age, lastsMs }) => age.atLeastMs < lastsMs);
