import type { LabelExpression } from '#shared/eviction/selectors.ts';

const NAME = /^(?:[a-z0-9](?:[-a-z0-9.]*[a-z0-9])?\/)?[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$/;
const VALUE = /^(?:[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?$/;
const SET = /^(\S+)\s+(in|notin)\s*\(([^()]*)\)$/;
const EQUALITY = /^([^=!\s]+)\s*(==?|!=)\s*([^=!\s]*)$/;

/** A label selector is invalid. The message shows valid ones. */
export class LabelSelectorError extends Error {
  override readonly name = 'LabelSelectorError';
}

/**
 * Parses a label selector in kubectl syntax: `team=web,env in (test,prod),!legacy`. Throws
 * `LabelSelectorError` if it is invalid. Upstream: `labels.Parse`.
 */
export function parseLabelSelector(text: string): readonly LabelExpression[] {
  // Commas within parentheses don't separate.
  return text.split(/,(?![^()]*\))/).map((part) => parsePart(part.trim()));
}

function parsePart(part: string): LabelExpression {
  const [, ofSet, operator, members = ''] = SET.exec(part) ?? [];
  if (ofSet !== undefined) {
    const values = members.split(',').map((value) => value.trim());
    return checked(part, { key: ofSet, operator: operator === 'in' ? 'In' : 'NotIn', values });
  }
  const [, key, sign, value = ''] = EQUALITY.exec(part) ?? [];
  if (key !== undefined)
    return checked(part, { key, operator: sign === '!=' ? 'NotIn' : 'In', values: [value] });
  const absent = part.startsWith('!');
  return checked(part, { key: absent ? part.slice(1) : part, operator: absent ? 'DoesNotExist' : 'Exists' });
}

function checked(part: string, requirement: LabelExpression): LabelExpression {
  const { key, values = [] } = requirement;
  if (NAME.test(key) && values.every((value) => VALUE.test(value))) return requirement;
  throw new LabelSelectorError(
    `The label selector part "${part}" cannot be read: write it like team=web, env in (test,prod) or !legacy.`,
  );
}
