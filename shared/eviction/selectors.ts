/** Controllers that run pods for these workloads, named after them with a dash and a suffix without one. */
export const INTERMEDIATE_OWNERS: Readonly<Record<string, string>> = {
  Deployment: 'ReplicaSet',
  CronJob: 'Job',
};

/**
 * Longer annotation values, like manifests, are not kept: a relay may read 150,000 pods with up to 256 KiB each. As
 * with labels, 63 characters suffice for a flag.
 */
export const MAX_ANNOTATION_CHARACTERS = 63;

/** `meta/v1.LabelSelector`. */
export interface LabelSelector {
  readonly matchLabels?: Readonly<Record<string, string>>;
  readonly matchExpressions?: readonly LabelExpression[];
}

/** `meta/v1.LabelSelectorRequirement`. */
export interface LabelExpression {
  readonly key: string;
  readonly operator: 'In' | 'NotIn' | 'Exists' | 'DoesNotExist';
  readonly values?: readonly string[];
}

const expressionsOf = ({
  matchLabels = {},
  matchExpressions = [],
}: LabelSelector): readonly LabelExpression[] => [
  ...Object.entries(matchLabels).map(([key, value]) => ({ key, operator: 'In' as const, values: [value] })),
  ...matchExpressions,
];

function expressionText({ key, operator, values = [] }: LabelExpression): string {
  if (operator === 'Exists') return key;
  if (operator === 'DoesNotExist') return `!${key}`;
  const isIn = operator === 'In';
  if (values.length === 1) return `${key}${isIn ? '=' : '!='}${values[0]}`;
  return `${key} ${isIn ? 'in' : 'notin'} (${values.join(', ')})`;
}

/** Returns a selector in kubectl's notation. */
export const selectorText = (selector: LabelSelector): string =>
  expressionsOf(selector).map(expressionText).join(',');

/** Returns conditions on one label that no object can meet together, in kubectl's notation, if there are any. */
export const contradiction = (selector: LabelSelector): readonly string[] | undefined =>
  Map.groupBy(expressionsOf(selector), ({ key }) => key)
    .values()
    .find(isContradiction)
    ?.map(expressionText);

function isContradiction(conditions: readonly LabelExpression[]): boolean {
  const operators = conditions.map(({ operator }) => operator);
  const listsOf = (wanted: LabelExpression['operator']) =>
    conditions.flatMap(({ operator, values = [] }) => (operator === wanted ? [values] : []));
  const [allowed, ...others] = listsOf('In');
  const forbidden = listsOf('NotIn').flat();
  const isForbidden = (value: string): boolean =>
    forbidden.includes(value) || others.some((values) => !values.includes(value));
  return (
    (operators.includes('DoesNotExist') && (allowed !== undefined || operators.includes('Exists'))) ||
    allowed?.every(isForbidden) === true
  );
}

/** Each `*` in a pattern matches any characters, or none. */
export const isPattern = (entry: string): boolean => entry.includes('*');

/** Reports whether a namespace matches a pattern, in time proportional to the lengths of both. */
export function matchesPattern(pattern: string, namespace: string): boolean {
  const [first = '', ...rest] = pattern.split('*');
  const last = rest.pop();
  if (last === undefined) return pattern === namespace;
  if (!namespace.startsWith(first)) return false;
  let at = first.length;
  for (const part of rest) {
    const found = namespace.indexOf(part, at);
    if (found < 0) return false;
    at = found + part.length;
  }
  return namespace.length - last.length >= at && namespace.endsWith(last);
}
