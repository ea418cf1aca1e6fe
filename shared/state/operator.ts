import { type Backoff, untilSuccessful } from '#shared/time/backoff.ts';
import type { Clock } from '#shared/time/clock.ts';
import type { Change, RulesStore } from './rules-store.ts';

/** An actor, and the store of the rules that its acts change. */
export interface Operator {
  readonly rulesStore: Pick<
    RulesStore,
    'read' | 'fleetStop' | 'changeOrders' | 'changeFleetStop' | 'changeGuard' | 'note'
  >;
  readonly clock: Clock;
  readonly actor: string;
}

/** An operator's request is invalid. The message is one sentence with the reason and the fix. */
export class OperatorError extends Error {
  override readonly name = 'OperatorError';
}

/** In an incident, two operators often make changes at the same time, but rarely more than a few do. */
const ATTEMPTS = 8;
const BACKOFF: Backoff = { firstMs: 20, longestMs: 320 };

/** Repeats an attempt while others are faster. Rejects with `OperatorError` after too many attempts. */
export async function repeatChange<Result>(
  attempt: () => Promise<{ readonly result: Result; readonly change: Change }>,
): Promise<Result> {
  const exhausted = () => new OperatorError('Update conflict: other changes are in progress. Try again.');
  return untilSuccessful(
    async () => {
      const { result, change } = await attempt();
      return change === 'changed' ? { result } : undefined;
    },
    { attempts: ATTEMPTS, backoff: BACKOFF, exhausted },
  );
}
