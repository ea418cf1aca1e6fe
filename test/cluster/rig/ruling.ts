import { clusterName } from '#shared/eviction/identity.ts';
import type { HoldTarget, Trip } from '#shared/eviction/policy.ts';
import { scopeText } from '#shared/explain/gate-text.ts';
import { perform } from '#shared/operations/acts/perform.ts';
import type { Operator } from '#shared/state/operator.ts';
import type { SqliteRulesStore } from '#shared/state/sqlite/sqlite-rules-store.ts';
import { openState } from '#shared/state/sqlite/sqlite-state.ts';
import { systemClock } from '#shared/time/clock.ts';
import type { ServiceProcess } from './service-process.ts';
import { CONTEXT } from './stage.ts';

const CLUSTER = clusterName(CONTEXT);
const WHY = 'a test';

/** The stored rules of the stage's cluster under a running service, and an operator who changes them. */
export class Ruling {
  readonly #rulesStore: SqliteRulesStore;
  readonly #operator: Operator;

  constructor({ stateDir }: Pick<ServiceProcess, 'stateDir'>) {
    this.#rulesStore = openState(stateDir).rulesStore;
    this.#operator = { rulesStore: this.#rulesStore, clock: systemClock, actor: 'suite' };
  }

  /** Returns the guard's active trips. */
  async trips(): Promise<readonly Trip[]> {
    return (await this.#rulesStore.read(CLUSTER)).guard.trips;
  }

  /** Releases all evictions that the guard holds. */
  async releaseGuard(): Promise<void> {
    for (const trip of await this.trips())
      await perform(
        { kind: 'release-guard', cluster: CLUSTER, reason: WHY, scope: scopeText(trip) },
        this.#operator,
      );
  }

  async stop(): Promise<void> {
    await perform({ kind: 'stop', cluster: CLUSTER, reason: WHY }, this.#operator);
  }

  /** Adds a hold; returns the ID by which it is released. */
  async hold(target: HoldTarget): Promise<string> {
    const act = { kind: 'hold', cluster: CLUSTER, target, reason: WHY } as const;
    return `${(await perform(act, this.#operator)).hold}`;
  }

  async release(hold: string): Promise<void> {
    await perform({ kind: 'release', cluster: CLUSTER, id: hold, reason: WHY }, this.#operator);
  }
}
