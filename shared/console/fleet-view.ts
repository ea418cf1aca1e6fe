import { isDeepStrictEqual } from 'node:util';
import type { ClusterName } from '#shared/eviction/identity.ts';
import { momentOf } from '#shared/eviction/retry.ts';
import type { BuiltIn } from '#shared/explain/built-in.ts';
import {
  type QueueCounts,
  type Snapshot,
  type ViewedFleet,
  view,
  withQueues,
} from '#shared/operations/look/look.ts';
import { firstDue, type PendingEviction } from '#shared/operations/look/pending.ts';
import { type PendingState, pendingStateOf } from '#shared/operations/look/pending-state.ts';
import type { StoredRules } from '#shared/state/rules-store.ts';
import { taintText } from '#shared/taints/taint.ts';
import { Age } from '#shared/time/age.ts';
import type { Clock } from '#shared/time/clock.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import type { PendingRow } from './api.ts';

/** Maximum share of time that is spent on reads, so that other work in this process isn't delayed. */
const READING_SHARE = 0.1;
/** Maximum time between two reads, however slow they are: the page shows a snapshot as current. */
const MAX_PAUSE_MS = 20_000;

/** A snapshot of the fleet, with the console's row for each pod. */
export interface Seen extends Snapshot {
  /** Increases with each change of the pending evictions. */
  readonly version: number;
  /** Pending evictions, earliest deadline first. */
  readonly pending: readonly PendingSeen[];
}

export interface PendingSeen extends PendingEviction {
  readonly row: PendingRow;
}

export interface FleetViewDeps {
  readonly fleet: ViewedFleet;
  readonly queues: () => Promise<QueueCounts>;
  readonly builtIn: (cluster: ClusterName) => BuiltIn;
  readonly clock: Clock;
  readonly maxAgeMs: number;
}

/** The state of a fleet. Concurrent callers share one read. */
export class FleetView {
  readonly #deps: FleetViewDeps;
  readonly #listeners = new Set<(seen: Seen) => void>();
  #seen: Seen | undefined;
  #reading: Promise<Seen> | undefined;
  /** Age of the snapshot. Absent: the snapshot must not be used. */
  #age: Age | undefined;
  #goodForMs = 0;

  constructor(deps: FleetViewDeps) {
    this.#deps = deps;
  }

  /** Returns a current or recent snapshot. Rejects with `StoreError` if nothing can be read. */
  async read(): Promise<Seen> {
    if (this.#seen && this.#age && this.#age.atMostMs < this.#goodForMs) return this.#seen;
    this.#reading ??= this.#read().finally(() => {
      this.#reading = undefined;
    });
    return this.#reading;
  }

  /** Does the same as {@link read}, but returns nothing older than this call. Used after changes. */
  async readAgain(): Promise<Seen> {
    await this.#reading?.catch(() => undefined);
    this.#age = undefined;
    return this.read();
  }

  listen(listener: (seen: Seen) => void): { readonly end: () => void } {
    this.#listeners.add(listener);
    return { end: () => void this.#listeners.delete(listener) };
  }

  async #read(): Promise<Seen> {
    const { clock, maxAgeMs } = this.#deps;
    const at = clock.now();
    const age = new Age(clock);
    const found = await seenOf(this.#deps, at, this.#seen);
    const before = this.#seen;
    const version = before?.version ?? 0;
    const isSame = before && isDeepStrictEqual(rowsOf(before), rowsOf(found));
    const seen = { ...found, version: isSame ? version : version + 1 };
    this.#seen = seen;
    this.#age = age;
    const tookMs = age.atLeastMs;
    this.#goodForMs = Math.max(maxAgeMs, Math.min(tookMs / READING_SHARE, tookMs + MAX_PAUSE_MS));
    for (const listener of this.#listeners) listener(seen);
    return seen;
  }
}

const rowsOf = ({ pending }: Pick<Seen, 'pending'>) => pending.map(({ row }) => row);

async function seenOf(
  { fleet, queues, builtIn, clock }: FleetViewDeps,
  at: EpochMs,
  before: Seen | undefined,
): Promise<Omit<Seen, 'version'>> {
  const live = (cluster: ClusterName) => ({ builtIn: builtIn(cluster) });
  const [viewed, counts] = await Promise.all([
    fleet.clusters().then((names) => view(fleet, names, live, { clock, before })),
    queues(),
  ]);
  const found = withQueues(viewed, counts);
  const pending = found.clusters.flatMap(({ storedRules, pending: ofCluster = [] }) =>
    ofCluster.map((each): PendingSeen => ({ ...each, row: rowOf(each, storedRules, at) })),
  );
  return { ...found, at, pending: pending.sort(firstDue) };
}

const TRIED_AGAIN: readonly PendingState[] = ['blocked', 'rejected', 'rate-limited', 'retrying'];

function rowOf(pending: PendingEviction, storedRules: StoredRules | undefined, at: EpochMs): PendingRow {
  const { cluster, node, record, gates } = pending;
  const { uid, namespace, name, dueAt, causes } = record;
  const { state, note } = pendingStateOf(pending, storedRules, at);
  const taints = causes.map(({ taint }) => taintText(taint)).join(', ');
  const holds = gates.flatMap((by) => (by.kind === 'hold' ? [by.id] : [])).join();
  const nextTryAt = TRIED_AGAIN.includes(state) ? momentOf(record, pending.state) : undefined;
  const row = [uid, cluster, node, namespace, name, dueAt, state, taints, note, holds] as const;
  return nextTryAt === undefined ? row : [...row, nextTryAt];
}
