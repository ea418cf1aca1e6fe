import * as z from 'zod';
import type { KeysOf } from '#shared/text/schema-of.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';

/** Every kind of fault that the holder of a cluster's lease reports, the most urgent first. Their conditions say what each means. */
export const FAULT_TYPES = [
  'lease-unavailable',
  'queue-unavailable',
  'same-cluster',
  'list-failing',
  'watch-failing',
  'store-failing',
  'queue-failing',
  'guard-unsaved',
  'clocks-differ',
  'heartbeat-suspended',
  'no-eviction-controller',
  'built-in-evicts',
  'conflicting-installation',
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
