import type { DeadLetterBox } from './dead-letters.ts';
import { FleetError } from './fleet.ts';

async function refuse(): Promise<never> {
  throw new FleetError(
    'A service in one process or in its cluster has no dead-letter messages. To list failed evictions, run "taintward pending"; to retry them, run "taintward retry".',
  );
}

/** Of a service without queues. What failed for good is in its store. */
export const NO_DEAD_LETTERS: DeadLetterBox = {
  count: async () => new Map(),
  list: refuse,
  redrive: refuse,
  redriveOne: refuse,
  purge: refuse,
  purgeOne: refuse,
};
