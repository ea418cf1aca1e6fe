import type { ClusterName } from '#shared/eviction/identity.ts';
import type { Trip } from '#shared/eviction/policy.ts';
import type { AuditEntry, Change, GuardState, RulesStore, StoredRules } from '#shared/state/rules-store.ts';
import { StoreError } from '#shared/state/store.ts';
import { guardStateOf } from '#shared/state/stored-rules.ts';

/** The stored state of one cluster's guard, in memory. */
export class ScriptedGuardStore implements Pick<RulesStore, 'read' | 'changeGuard' | 'touchGuard'> {
  state: GuardState = { revision: 0, trips: [] };
  /** True if all reads and writes fail. */
  isAway = false;
  /** True if all writes fail. */
  isReadOnly = false;
  /** Writes wait for this promise. */
  answer: Promise<void> = Promise.resolve();
  /** The texts of the audit entries so far. */
  readonly noted: string[] = [];
  /** The number of attempted writes. */
  tries = 0;
  /** The number of attempts to rewrite the unchanged state. */
  touches = 0;

  async read(_cluster: ClusterName): Promise<StoredRules> {
    this.#beThere();
    return { orders: { revision: 0, stops: [], holds: [] }, guard: this.state, fleetRevision: 0 };
  }

  async changeGuard(
    _cluster: ClusterName,
    found: GuardState,
    trips: readonly Trip[],
    entry?: AuditEntry,
  ): Promise<Change> {
    this.tries += 1;
    await this.answer;
    this.#beWritable();
    if (found.revision !== this.state.revision) return 'conflict';
    this.set(trips);
    if (entry) this.noted.push(entry.message);
    return 'changed';
  }

  async touchGuard(_cluster: ClusterName, { revision }: GuardState): Promise<Change> {
    this.touches += 1;
    this.#beWritable();
    return revision === this.state.revision ? 'changed' : 'conflict';
  }

  /** Writes these trips, active and released ones, as another process. */
  set(trips: readonly Trip[]): void {
    this.state = guardStateOf(this.state.revision + 1, trips);
  }

  #beWritable(): void {
    this.#beThere();
    if (this.isReadOnly) throw new StoreError('the table takes no writes');
  }

  #beThere(): void {
    if (this.isAway) throw new StoreError('the table is away');
  }
}
