/** The settings of a relay under test, as JSON. */
export interface RelaySetting {
  /** The file of leases, which several relays may share, or `:memory:`. */
  readonly leases: string;
  readonly logs: boolean;
  readonly clusters: readonly RelayedCluster[];
}

export interface RelayedCluster {
  readonly name: string;
  readonly url: string;
  /** The trusted certificate, in PEM. */
  readonly certificate: string;
}

/** A delta that a queue accepted. */
export interface SentDelta {
  /** Epoch ms. */
  readonly at: number;
  readonly kind: 'node' | 'pod' | 'pod-gone';
  readonly cluster: string;
  readonly node: string;
  /** The number of taints. */
  readonly taints: number;
  /** The number of pods in the delta. */
  readonly pods: number;
}

/** The questions to a relay, and their answers. */
export interface RelayAnswer {
  /** The clusters that it follows, with the start time (epoch ms). */
  readonly live: Readonly<Record<string, number>>;
  /** The deltas that queues accepted since the last question. */
  readonly deltas: readonly SentDelta[];
  readonly 'record-no-more': null;
  readonly memory: { readonly heapMb: number; readonly sent: number; readonly carried: number };
}

export type RelayQuestion = keyof RelayAnswer;
