import type { NodeRef } from '#shared/eviction/identity.ts';
import { SqliteStore } from '#shared/state/sqlite/sqlite-store.ts';
import { type Commit, StoreError } from '#shared/state/store.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';

/** The embedded store with scripted failures. */
export class ScriptedStore extends SqliteStore {
  /** The number of commits that conflict before the next one succeeds. */
  conflicts = 0;
  /** The number of loads that fail before the next one succeeds. */
  outages = 0;
  commits = 0;

  constructor() {
    super({ path: ':memory:' });
  }

  override async load(...args: Parameters<SqliteStore['load']>): ReturnType<SqliteStore['load']> {
    if (this.outages > 0) {
      this.outages -= 1;
      throw new StoreError('the table is away');
    }
    return super.load(...args);
  }

  override async commit(
    ref: NodeRef,
    revision: number,
    change: Commit,
    now: EpochMs,
  ): ReturnType<SqliteStore['commit']> {
    this.commits += 1;
    if (this.conflicts > 0) {
      this.conflicts -= 1;
      return 'conflict';
    }
    return super.commit(ref, revision, change, now);
  }
}
