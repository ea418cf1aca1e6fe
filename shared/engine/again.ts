/**
 * The next attempt at a message that is unfinished although nothing failed. A queue may round the time up to whole
 * seconds.
 */
export interface Again {
  readonly againInSeconds: number;
}
