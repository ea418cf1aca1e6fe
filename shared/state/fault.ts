import * as z from 'zod';
import type { EpochMs } from '#shared/time/epoch-ms.ts';

/** Every kind of fault that the holder of a cluster's lease reports, the most urgent first. */
export const FAULT_TYPES = [
  /** A list or a watch of nodes or pods fails; `status` says how: 401, 403, 410, or absent for a time-out or a lost connection. */
  'list-failing',
  'watch-failing',
  /** The store, the disk below it, or the queue of deltas refuses writes. */
  'store-failing',
  'queue-failing',
  /** The guard's state cannot be saved. */
  'guard-unsaved',
  /** The clocks of an API server and the relay differ by more than 30 s. */
  'clocks-differ',
  /** A cluster was taken over, and its heartbeat is not renewed: the built-in controller is about to evict. */
  'heartbeat-suspended',
  /** Pods are due, and neither this installation nor the built-in controller evicts them. */
  'no-eviction-controller',
  /** The built-in controller evicted pods that are held or excluded here. */
  'built-in-evicts',
  /** Another installation evicts in the same cluster. */
  'conflicting-installation',
  /** The taint of a node says that it was added in the future; that is ignored. */
  'taint-time-in-future',
] as const;

export type FaultType = (typeof FAULT_TYPES)[number];

/** A lease carries no more of them, because each renewal costs what it holds. */
export const MAX_FAULTS = 8;
/** Characters of a fault's `error`. */
export const MAX_FAULT_TEXT = 300;

/** Something wrong with a cluster, as the holder of its lease reports it. Not reported any more: it is over. */
export interface Fault {
  readonly type: FaultType;
  /** When it began, by the holder's clock. */
  readonly since: EpochMs;
  /** One sentence, cut to {@link MAX_FAULT_TEXT}. */
  readonly error: string;
  /** With `list-failing` and `watch-failing`. */
  readonly resource?: 'nodes' | 'pods';
  /** The HTTP status of the last answer; absent: there was no answer. */
  readonly status?: number;
  /** Of pods, with `built-in-evicts`, since the holder began to count. */
  readonly count?: number;
}

export const faultSchema: z.ZodType<Fault> = z.object({
  type: z.enum(FAULT_TYPES),
  since: z.int(),
  error: z.string(),
  resource: z.enum(['nodes', 'pods']).exactOptional(),
  status: z.int().exactOptional(),
  count: z.int().exactOptional(),
});

/** Faults as they are stored. A newer release may know others: those are skipped, and the lease can be read all the same. */
export const faultsSchema = z
  .array(z.unknown())
  .transform((stored): readonly Fault[] => stored.flatMap((each) => faultSchema.safeParse(each).data ?? []));
