import type { EpochMs } from '#shared/time/epoch-ms.ts';

/** Functions that queues feed, as their names end. */
export const FED_FUNCTIONS = ['node-delta', 'pod-delta', 'evict'] as const;
export type FedFunction = (typeof FED_FUNCTIONS)[number];

/** What limits a deployment in its account and region. */
export interface Quotas {
  /** Invocations at a time, of all functions of the account that have none reserved. */
  readonly invocations: number;
  /** At most so many batches of its queue does each function handle at a time. */
  readonly batches: Readonly<Record<FedFunction, number>>;
  /** What Lambda keeps for a function alone, by those that have it so. */
  readonly reserved?: Readonly<Partial<Record<FedFunction, number>>>;
  /** Writes per second that the table takes at once; absent: it is not said. */
  readonly writesAtOnce?: number;
  /** Writes per second up to which it grows by itself. */
  readonly mostWrites: number;
}

/** An alarm of a deployment. */
export interface AlarmSeen {
  readonly name: string;
  readonly state: 'OK' | 'ALARM' | 'INSUFFICIENT_DATA';
  /** Since when it is in that state. */
  readonly since: EpochMs;
  /** What it means and what to do. */
  readonly says: string;
  /** How many are told when it rings. */
  readonly receivers: number;
}

/** What AWS says of a deployment beside what its table and queues hold. Every method rejects with `FleetError` or `StoreError`. */
export interface Account {
  /** The release whose stack was deployed last; `undefined`: one that did not say it. */
  release(): Promise<string | undefined>;
  quotas(): Promise<Quotas>;
  alarms(): Promise<readonly AlarmSeen[]>;
}
