import { join } from 'node:path';
import { openDatabase } from '#functions/local/sqlite-database.ts';
import { SqliteRulebook } from '#functions/local/sqlite-rulebook.ts';
import { clusterName } from '#shared/eviction/identity.ts';
import type { Policy, Trip } from '#shared/eviction/policy.ts';
import { CONTEXT } from './stage.ts';

const CLUSTER = clusterName(CONTEXT);
const WHO = { cluster: CLUSTER, who: 'suite', why: 'a test' } as const;

/** Who rules a service's cluster by its state directory, from another process. */
export class Operator {
  readonly #rulebook: SqliteRulebook;
  readonly #close: () => void;

  constructor(stateDir: string) {
    const database = openDatabase(join(stateDir, 'store.sqlite'));
    this.#rulebook = new SqliteRulebook({ database });
    this.#close = () => database.close();
  }

  async apply(read: Policy): Promise<void> {
    const { orders } = await this.#rulebook.read(CLUSTER);
    const { revision, ...rest } = orders;
    const policy = { text: '', read, revision: revision + 1 };
    const entry = { ...WHO, at: Date.now(), kind: 'policy', what: 'a policy' } as const;
    await this.#rulebook.changeOrders(CLUSTER, orders, { ...rest, policy }, entry);
  }

  async trips(): Promise<readonly Trip[]> {
    return (await this.#rulebook.read(CLUSTER)).guard.trips;
  }

  /** Releases all that the guard holds. */
  async release(): Promise<void> {
    const { guard } = await this.#rulebook.read(CLUSTER);
    const entry = { ...WHO, at: Date.now(), kind: 'release-guard', what: 'all' } as const;
    await this.#rulebook.changeGuard(CLUSTER, guard, [], entry);
  }

  close(): void {
    this.#close();
  }
}
