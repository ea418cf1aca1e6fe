import type fc from 'fast-check';

/** The result of an input. `accepted`: the input was read, and has the same meaning when it is written again. */
export type Outcome = 'accepted' | 'refused';

/** One kind of hostile input, and the entry points that receive it. */
export interface Kind<Input> {
  readonly name: string;
  /** The most processor time that an input may take, as a multiple of reading and writing 1 MB of JSON; absent: 20. */
  readonly mostYardsticks?: number;
  /** Opens the entry points. */
  open(): Promise<Opened<Input>>;
}

export interface Opened<Input> {
  readonly inputs: fc.Arbitrary<Input>;
  /**
   * Feeds one input to all entry points that accept its type. Rejects with `Broken` if the input is neither accepted nor rejected
   * properly.
   */
  feed(input: Input): Promise<Outcome>;
  close(): Promise<void> | void;
}
