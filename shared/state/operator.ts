import { DEFAULT_POLICY } from '#shared/eviction/policy.ts';
import { type Backoff, untilSuccessful } from '#shared/time/backoff.ts';
import type { Clock } from '#shared/time/clock.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import { current } from './operator-controls.ts';
import { type ChangedSetting, changedSettings } from './policy-change.ts';
import { parseAppliedPolicy } from './policy-document.ts';
import type { Change, OperatorControls, RulesStore } from './rules-store.ts';

/** Who acts on which rules. */
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

/** The message of an audit entry has no more changed settings, and no longer values. The entry has all of them. */
const MAX_SETTINGS = 10;
const MAX_VALUE_CHARACTERS = 40;
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

/** Returns the operator controls with a new policy document, and its audit entry. Throws `PolicyError`. */
export function policyOrders(found: OperatorControls, text: string, now: EpochMs) {
  const orders = current(found, now);
  const read = parseAppliedPolicy(text);
  const revision = found.revision + 1;
  const settings = changedSettings(orders.policy?.read ?? DEFAULT_POLICY, read);
  const entry = {
    kind: 'policy',
    message: `applied a policy: ${[read.mode, ...changeTexts(settings)].join(', ')}`,
    policy: { revision, text, settings },
  } as const;
  return { next: { ...orders, policy: { text, read, revision } }, entry };
}

function changeTexts(settings: readonly ChangedSetting[]): readonly string[] {
  const changed = settings.filter(({ setting }) => setting !== 'mode');
  const texts = changed.slice(0, MAX_SETTINGS).map(({ setting, next }) => {
    if (next === '-') return `no ${setting}`;
    return next.length > MAX_VALUE_CHARACTERS ? setting : `${setting}: ${next}`;
  });
  return changed.length > MAX_SETTINGS ? [...texts, `${changed.length - MAX_SETTINGS} more`] : texts;
}
