import type { AuditEntry, Change, GuardState, Rulebook, Rulings } from '#shared/clusters/rulebook.ts';
import { guardStateOf } from '#shared/clusters/stored-rules.ts';
import type { ClusterName } from '#shared/eviction/identity.ts';
import type { Trip } from '#shared/eviction/policy.ts';
import { StoreError } from '#shared/store/store.ts';

/** What is written of one cluster's guard, in memory. */
export class ScriptedGuardBook implements Pick<Rulebook, 'read' | 'changeGuard'> {
  state: GuardState = { revision: 0, trips: [] };
  /** Nothing is read or written. */
  isAway = false;
  /** Writes wait for it. */
  answer: Promise<void> = Promise.resolve();
  /** What the audit says. */
  readonly noted: string[] = [];
  /** Tries to write. */
  tries = 0;

  async read(_cluster: ClusterName): Promise<Rulings> {
    this.#beThere();
    return { orders: { revision: 0, holds: [] }, guard: this.state, fleetRevision: 0 };
  }

  async changeGuard(
    _cluster: ClusterName,
    found: GuardState,
    trips: readonly Trip[],
    entry?: AuditEntry,
  ): Promise<Change> {
    this.tries += 1;
    await this.answer;
    this.#beThere();
    if (found.revision !== this.state.revision) return 'conflict';
    this.set(trips);
    if (entry) this.noted.push(entry.what);
    return 'changed';
  }

  /** Somebody writes these trips, standing and released ones. */
  set(trips: readonly Trip[]): void {
    this.state = guardStateOf(this.state.revision + 1, trips);
  }

  #beThere(): void {
    if (this.isAway) throw new StoreError('the table is away');
  }
}
