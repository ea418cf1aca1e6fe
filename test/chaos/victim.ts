/** A process of the service, or a process on which it depends. */
export interface Victim {
  readonly name: string;
  /** Kills the process (`kill -9`); absent: it would lose data that the real one never loses. */
  readonly kill?: () => Promise<void>;
  /** Starts it again, and does not wait until it is ready. */
  readonly start?: () => Promise<void>;
  /** Suspends the process (SIGSTOP), and resumes it (SIGCONT); absent: it is too short-lived. */
  readonly pause?: () => void;
  readonly resume?: () => void;
  /** Sets its own clock to so many milliseconds ahead of the machine's; absent: it has no clock of its own. */
  readonly setClock?: (aheadMs: number) => void;
  /** True if the evicting process does not receive the proxy's responses while this victim is suspended. */
  readonly receivesAnswers?: true;
}

/** The service in one of its forms, on one cluster. */
export interface Form {
  readonly victims: readonly Victim[];
  /** Waits until the service watches the cluster. */
  ready(): Promise<void>;
  /** Processes that ended by themselves, and their last output. */
  readonly crashes: readonly string[];
  close(): Promise<void>;
}
