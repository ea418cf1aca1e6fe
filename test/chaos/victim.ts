/** A process of the service, or one it stands on. */
export interface Victim {
  readonly name: string;
  /** `kill -9`; absent: that would lose what the real thing never loses. */
  readonly kill?: () => Promise<void>;
  /** Starts it again, and does not wait until it is ready. */
  readonly start?: () => Promise<void>;
  /** Stops it in its tracks (SIGSTOP), and lets it go on (SIGCONT); absent: it is too short-lived. */
  readonly pause?: () => void;
  readonly resume?: () => void;
  /** Sets its own clock to so many milliseconds ahead of the machine's; absent: it has none of its own. */
  readonly setClock?: (aheadMs: number) => void;
  /** While it is stopped, who evicts hears of no answer that the proxy gave. */
  readonly hearsAnswers?: true;
}

/** The service in one of its forms, on one cluster. */
export interface Form {
  readonly victims: readonly Victim[];
  /** Waits until it watches the cluster. */
  ready(): Promise<void>;
  /** Processes that ended by themselves, and what they said last. */
  readonly crashes: readonly string[];
  close(): Promise<void>;
}
