import * as z from 'zod';
import { podUid } from '#shared/eviction/identity.ts';
import type { EvictionRecord, NodeState } from '#shared/eviction/records.ts';
import { StoreError } from './store.ts';

const epochMs = z.int().nonnegative();
const version = z.object({ epoch: z.int().nonnegative(), sequence: z.int().nonnegative() });

const timedTaint = z.object({
  key: z.string().min(1),
  value: z.string().exactOptional(),
  effect: z.string(),
  timeAdded: epochMs.exactOptional(),
  since: epochMs,
  known: z.enum(['appeared', 'found']),
});

/** What a NODE item says of its node. Unknown fields, of a newer release, are ignored and kept. */
export const nodeStateSchema: z.ZodType<NodeState> = z.object({
  taints: z.array(timedTaint),
  version,
  observedAt: epochMs,
  podsVersion: version.exactOptional(),
  deletedAt: epochMs.exactOptional(),
});

export const revisionSchema = z.int().positive();

/** What an EVICTION item says. */
export const evictionSchema: z.ZodType<EvictionRecord> = z.object({
  uid: z.string().min(1).transform(podUid),
  namespace: z.string().min(1),
  name: z.string().min(1),
  podSince: epochMs,
  startedAt: epochMs,
  fireAt: epochMs,
  because: z.array(z.string()),
  version,
  state: z.enum(['scheduled', 'cancelled', 'done', 'gone']),
});

/**
 * Checks what was stored against its schema. Throws `StoreError` naming `what` and the first field at fault:
 * nothing is decided on an item that somebody else's hand, or a newer release, has changed beyond reading.
 */
export function parseStored<T>(schema: z.ZodType<T>, stored: unknown, what: string): T {
  const found = schema.safeParse(stored);
  if (found.success) return found.data;
  const [issue] = found.error.issues;
  const field = issue?.path.join('.') || 'value';
  throw new StoreError(
    `The stored ${what} cannot be read (${field}: ${issue?.message}): was it written by a newer release, or changed by hand?`,
  );
}
