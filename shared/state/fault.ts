import * as z from 'zod';
import type { KeysOf } from '#shared/text/schema-of.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';

/** Every kind of fault that the holder of a cluster's lease reports, the most urgent first. */
export const FAULT_TYPES = [
  /** The cluster is managed under another name, so nothing is evicted under this one. */
  'same-cluster',
  /** A list or a watch fails. `status`: 401, 403 or 410; absent for a timeout or a lost connection. */
  'list-failing',
  'watch-failing',
  /** The store, the disk below it, or the queue of deltas rejects writes. */
  'store-failing',
  'queue-failing',
  'guard-unsaved',
  /** The clocks of an API server and the relay differ by more than 30 s. */
  'clocks-differ',
  /** The takeover's heartbeat is not renewed: the built-in controller is about to evict. */
  'heartbeat-suspended',
  /** Pods are due, and neither this installation nor the built-in controller evicts them. */
  'no-eviction-controller',
  /** The built-in controller evicted pods that are held or excluded here. */
  'built-in-evicts',
  'conflicting-installation',
  /** A node's taint has a future time, which is ignored. */
  'taint-time-in-future',
] as const;

export type FaultType = (typeof FAULT_TYPES)[number];

/** Maximum of faults in a lease, because each renewal is charged by the lease's size. */
export const MAX_FAULTS = 8;
export const MAX_FAULT_TEXT = 300;

/** A problem with a cluster, reported by the holder of its lease. It is over once the holder no longer reports it. */
export interface Fault {
  readonly type: FaultType;
  /** When the problem began, by the holder's clock. */
  readonly since: EpochMs;
  /** One sentence, truncated to {@link MAX_FAULT_TEXT}. */
  readonly error: string;
  /** With `list-failing` and `watch-failing`. */
  readonly resource?: 'nodes' | 'pods';
  /** The HTTP status of the last response. Absent: there was none. */
  readonly status?: number;
  /** With `built-in-evicts`: the number of pods since the holder began to count. */
  readonly count?: number;
}

export const faultSchema: z.ZodType<Fault> = z.object({
  type: z.enum(FAULT_TYPES),
  since: z.int(),
  error: z.string(),
  resource: z.enum(['nodes', 'pods']).exactOptional(),
  status: z.int().exactOptional(),
  count: z.int().exactOptional(),
} satisfies KeysOf<Fault>);

/** Faults in their stored form. Unknown faults of a newer release are skipped, so that the lease stays readable. */
export const faultsSchema = z
  .array(z.unknown())
  .transform((stored): readonly Fault[] => stored.flatMap((each) => faultSchema.safeParse(each).data ?? []));
