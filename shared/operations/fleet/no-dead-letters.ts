import type { DeadLetterBox } from './dead-letters.ts';
import { FleetError } from './fleet.ts';

async function refuse(): Promise<never> {
  throw new FleetError(
    'A service in one process or in its cluster has no dead-letter messages. To list failed evictions, run "taintward pending"; to retry them, run "taintward retry".',
  );
}

/** Dead letters of a service without queues. Its store contains the failed evictions. */
export const NO_DEAD_LETTERS: DeadLetterBox = {
  count: async () => new Map(),
  list: refuse,
  redrive: refuse,
};
