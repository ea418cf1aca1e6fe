import type * as z from 'zod';
import { StoreError } from '#shared/state/store.ts';
import { parseStored } from '#shared/state/stored.ts';
import { type Backoff, backoffMs } from '#shared/time/backoff.ts';
import { pause } from '#shared/time/pause.ts';
import type { DynamoDbTable, Item, Key } from './dynamodb-table.ts';

/**
 * With this many attempts, a taker fails only after as many others succeeded: each conflict means that another taker
 * got its permits.
 */
const MAX_TRIES = 30;
const BACKOFF: Backoff = { firstMs: 5, longestMs: 250 };

/** One item from which several functions take permits concurrently. */
export interface PermitItem<Stored> {
  readonly key: Key;
  /** Epoch seconds. */
  readonly ttl: number;
  readonly schema: z.ZodType<Stored>;
  /** The name of the item in errors, such as `rate of cluster c1`. */
  readonly name: string;
  /**
   * The owner of the permits in errors, such as `cluster c1`. `follows`: a sentence for errors after too many
   * conflicts.
   */
  readonly permitsOf: string;
  readonly follows: string;
}

/**
 * Takes permits by optimistic concurrency. `grant` derives from the stored item the `taken` permits and the
 * attributes to `set`. Without `set`, nothing is written. `grant` is called again after each conflict. Rejects with
 * `StoreError` after 30 conflicts.
 */
export async function takePermits<Stored extends { readonly revision?: number }, Taken>(
  table: DynamoDbTable,
  { key, ttl, schema, name, permitsOf, follows }: PermitItem<Stored>,
  grant: (stored: Stored) => { readonly taken: Taken; readonly set?: Item },
): Promise<Taken> {
  for (let tries = 1; tries <= MAX_TRIES; tries++) {
    // Read by a write: taking permits then needs no permission to read neighboring items.
    const stored = parseStored(schema, await table.update({ key, set: { ttl } }), name);
    const { taken, set } = grant(stored);
    if (!set) return taken;
    const { revision } = stored;
    const next = { ...set, ttl, revision: (revision ?? 0) + 1 };
    if (await table.update({ key, set: next, expected: { revision } })) return taken;
    await pause(backoffMs(tries, BACKOFF));
  }
  throw new StoreError(`Others took permits of ${permitsOf} in each of ${MAX_TRIES} attempts. ${follows}`);
}
