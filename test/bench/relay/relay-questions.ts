/** What a relay under test is started with, as JSON. */
export interface RelaySetting {
  /** The file of leases, which several relays may share, or `:memory:`. */
  readonly leases: string;
  readonly logLevel: string;
  readonly clusters: readonly RelayedCluster[];
}

export interface RelayedCluster {
  readonly name: string;
  readonly url: string;
  /** PEM of whom to trust. */
  readonly certificate: string;
}

/** A delta that a queue took. */
export interface ToldDelta {
  /** Epoch ms. */
  readonly at: number;
  readonly kind: 'node' | 'pod' | 'pod-gone';
  readonly cluster: string;
  readonly node: string;
  /** How many. */
  readonly taints: number;
  /** How many the delta speaks of. */
  readonly pods: number;
}

/** What it can be asked, and what it answers. */
export interface RelayAnswer {
  /** Clusters that it follows, with since when (epoch ms). */
  readonly live: Readonly<Record<string, number>>;
  /** What queues took since the last time. */
  readonly told: readonly ToldDelta[];
  readonly 'record-no-more': null;
  readonly memory: { readonly heapMb: number; readonly sent: number; readonly carried: number };
}

export type RelayQuestion = keyof RelayAnswer;
