/** The promises of the service, in brief. */
export const PROMISES = {
  P1: 'never early, never another pod, never by an old look',
  P2: 'in time, whatever crashes',
  P3: 'changes count, and are told of',
  P4: 'deadlines outlive deaths and take-overs',
  P5: 'what is stored becomes what is so',
  P6: 'nothing is dropped, multiplies or is tried for ever',
  P7: 'idle costs nothing',
  P8: 'no cluster waits for another that is away',
  P9: 'nothing that is forbidden',
} as const;

export type PromiseName = keyof typeof PROMISES;

/** The number of tests of each promise. */
export type Tried = Record<PromiseName, number>;

export const untried = (): Tried => ({ P1: 0, P2: 0, P3: 0, P4: 0, P5: 0, P6: 0, P7: 0, P8: 0, P9: 0 });
