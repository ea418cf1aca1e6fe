import type { NodeRef } from '#shared/eviction/identity.ts';
import { SqliteStore } from '#shared/state/sqlite/sqlite-store.ts';
import { type Commit, StoreError } from '#shared/state/store.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';

/** The embedded store, and what goes wrong with it next. */
export class ScriptedStore extends SqliteStore {
  /** Commits that lose the race before one is made. */
  conflicts = 0;
  /** Loads that fail before one succeeds. */
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
