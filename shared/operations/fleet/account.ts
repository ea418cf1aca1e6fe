import type { EpochMs } from '#shared/time/epoch-ms.ts';

/** Functions with a source queue, by the suffix of their names. */
export const FED_FUNCTIONS = ['node-delta', 'pod-delta', 'evict'] as const;
export type FedFunction = (typeof FED_FUNCTIONS)[number];

/** Limits of a deployment in its account and region. */
export interface Quotas {
  /** Concurrent executions of all functions in the account without reserved concurrency. */
  readonly invocations: number;
  /** Maximum number of concurrent batches of each function. */
  readonly batches: Readonly<Record<FedFunction, number>>;
  /** Writes per second that the table can accept immediately. Absent: not known. */
  readonly writesAtOnce?: number;
  /** Maximum writes per second to which the table scales. */
  readonly mostWrites: number;
}

export interface AlarmSeen {
  readonly name: string;
  readonly state: 'OK' | 'ALARM' | 'INSUFFICIENT_DATA';
  readonly since: EpochMs;
  /** Meaning and remediation. */
  readonly description: string;
  readonly receivers: number;
}

/** Facts of a deployment besides table items and messages. Every method rejects with `FleetError` or `StoreError`. */
export interface Account {
  /** Returns the release of the last deployed stack. `undefined`: the stack doesn't contain it. */
  release(): Promise<string | undefined>;
  quotas(): Promise<Quotas>;
  alarms(): Promise<readonly AlarmSeen[]>;
}
