import { FAULT_TYPES, type Fault, MAX_FAULT_TEXT, MAX_FAULTS } from '#shared/clusters/fault.ts';
import { errorMessage } from '#shared/error-message.ts';
import type { EpochMs } from '#shared/eviction/identity.ts';
import { ApiError } from '#shared/kubernetes/api-error.ts';
import { shownText } from '#shared/shown-text.ts';
import type { Clock } from '#shared/time/clock.ts';

/** A cluster has one fault of each kind at a time. */
export type FaultKind = Pick<Fault, 'type' | 'resource'>;

export interface Notice {
  /** Who noticed the fault; each ends its own notice. Absent: there is only one who can. */
  readonly by?: string;
  /** The notice ends by itself after this. Absent: it stands until {@link ClusterFaults.end}. */
  readonly lastsMs?: number;
}

interface Noticed extends Fault {
  readonly count: number;
  /** Until when each notice stands, by who noticed the fault. */
  readonly until: Map<string, EpochMs>;
}

/**
 * What is wrong with one cluster now, for its lease. A fault begins with the first notice, and is over when nobody's notice stands
 * any more: of a hundred watches, all that failed have to succeed.
 */
export class ClusterFaults {
  readonly #clock: Clock;
  readonly #noticed = new Map<string, Noticed>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Notes a fault, or that it lasts; the last error is the one that is reported. */
  begin(kind: FaultKind, error: unknown, { by = '', lastsMs = Number.POSITIVE_INFINITY }: Notice = {}): void {
    const now = this.#clock.now();
    const key = keyOf(kind);
    const found = this.#noticed.get(key);
    const before = found && stands(found, now) ? found : undefined;
    const until = before?.until ?? new Map<string, EpochMs>();
    until.set(by, now + lastsMs);
    this.#noticed.set(key, {
      ...kind,
      since: before?.since ?? now,
      error: shownText(errorMessage(error), MAX_FAULT_TEXT - 1),
      ...(error instanceof ApiError && error.status !== 0 ? { status: error.status } : {}),
      count: (before?.count ?? 0) + 1,
      until,
    });
  }

  end(kind: FaultKind, by = ''): void {
    // Asked for each event of a watch.
    if (this.#noticed.size === 0) return;
    const key = keyOf(kind);
    const found = this.#noticed.get(key);
    if (found?.until.delete(by) && found.until.size === 0) this.#noticed.delete(key);
  }

  /** Notes by an outcome that it failed or, without an error, did not. */
  note(kind: FaultKind, error: unknown, notice: Notice = {}): void {
    if (error === undefined) this.end(kind, notice.by);
    else this.begin(kind, error, notice);
  }

  clear(): void {
    this.#noticed.clear();
  }

  /** The most urgent first, as many as a lease carries. */
  get list(): readonly Fault[] {
    const now = this.#clock.now();
    const rank = ({ type }: Fault) => FAULT_TYPES.indexOf(type);
    return [...this.#noticed.values()]
      .filter((each) => stands(each, now))
      .sort((a, b) => rank(a) - rank(b))
      .slice(0, MAX_FAULTS)
      .map(({ until: _until, count, ...fault }) =>
        fault.type === 'built-in-evicts' ? { ...fault, count } : fault,
      );
  }
}

const keyOf = ({ type, resource }: FaultKind): string => `${type} ${resource ?? ''}`;

const stands = ({ until }: Noticed, now: EpochMs): boolean => until.values().some((each) => each > now);
