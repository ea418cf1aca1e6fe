import type fc from 'fast-check';

/** How an input ended. `accepted`: it was taken for what it says, and says the same when it is written again. */
export type Outcome = 'accepted' | 'refused';

/** One kind of hostile input, and the doors through which it comes in. */
export interface Kind<Input> {
  readonly name: string;
  /** An input may take so many times the processor time of reading and writing 1 MB of JSON; absent: 20. */
  readonly mostYardsticks?: number;
  /** Opens what it is given to. */
  open(): Promise<Opened<Input>>;
}

export interface Opened<Input> {
  readonly inputs: fc.Arbitrary<Input>;
  /** Gives one input to all doors that take it. Rejects with `Broken` for whatever is neither. */
  feed(input: Input): Promise<Outcome>;
  close(): Promise<void> | void;
}
