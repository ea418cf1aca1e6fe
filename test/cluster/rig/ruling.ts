import { clusterName } from '#shared/eviction/identity.ts';
import type { HoldTarget, Trip } from '#shared/eviction/policy.ts';
import { scopeText } from '#shared/explain/gate-text.ts';
import { Operator } from '#shared/state/operator.ts';
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
    this.#operator = new Operator({ rulesStore: this.#rulesStore, clock: systemClock, actor: 'suite' });
  }

  async applyPolicy(document: string): Promise<void> {
    await this.#operator.applyPolicy(CLUSTER, document);
  }

  /** Returns the guard's active trips. */
  async trips(): Promise<readonly Trip[]> {
    return (await this.#rulesStore.read(CLUSTER)).guard.trips;
  }

  /** Releases all evictions that the guard holds. */
  async releaseGuard(): Promise<void> {
    for (const trip of await this.trips()) await this.#operator.releaseGuard(CLUSTER, WHY, scopeText(trip));
  }

  async stop(): Promise<void> {
    await this.#operator.stop(CLUSTER, { reason: WHY });
  }

  /** Adds a hold; returns the ID by which it is released. */
  async hold(target: HoldTarget): Promise<string> {
    return (await this.#operator.hold(CLUSTER, target, { reason: WHY })).id;
  }

  async release(hold: string): Promise<void> {
    await this.#operator.release(CLUSTER, hold, WHY);
  }
}
