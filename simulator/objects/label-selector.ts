import { badRequest } from './status.ts';
import type { LabelSelector } from './workload-kinds.ts';

type Labels = Readonly<Record<string, string>>;

/** One requirement for a label. Upstream: `labels.Requirement`. */
interface Requirement {
  readonly key: string;
  readonly operator: 'In' | 'NotIn' | 'Exists' | 'DoesNotExist';
  readonly values: readonly string[];
}

const OPERATORS: readonly string[] = ['In', 'NotIn', 'Exists', 'DoesNotExist'];

/** Reports whether labels meet all requirements; as upstream, a missing label meets `NotIn`. */
const fits = (requirements: readonly Requirement[], labels: Labels): boolean =>
  requirements.every(({ key, operator, values }) => {
    const value = labels[key];
    switch (operator) {
      case 'In':
        return value !== undefined && values.includes(value);
      case 'NotIn':
        return value === undefined || !values.includes(value);
      case 'Exists':
        return value !== undefined;
      case 'DoesNotExist':
        return value === undefined;
      default:
        return operator satisfies never;
    }
  });

/**
 * Reports whether labels are selected. An empty selector selects everything. An absent selector, or one with an invalid operator,
 * selects nothing. Upstream: `LabelSelectorAsSelector`.
 */
export function selectsLabels(selector: LabelSelector | undefined, labels: Labels = {}): boolean {
  if (selector === undefined) return false;
  const wanted = Object.entries(selector.matchLabels ?? {});
  const expressions = selector.matchExpressions ?? [];
  if (expressions.some(({ operator }) => !OPERATORS.includes(operator))) return false;
  return (
    wanted.every(([key, value]) => labels[key] === value) &&
    fits(expressions as readonly Requirement[], labels)
  );
}

/** Returns a selector in kubectl's notation: `app=web,tier in (a,b)`; `<none>` for one that selects everything. */
export function selectorText({ matchLabels = {}, matchExpressions = [] }: LabelSelector): string {
  const terms = [
    ...Object.entries(matchLabels).map(([key, value]) => `${key}=${value}`),
    ...matchExpressions.map(({ key, operator, values }) => {
      if (operator === 'Exists') return key;
      if (operator === 'DoesNotExist') return `!${key}`;
      return `${key} ${operator === 'In' ? 'in' : 'notin'} (${values.join(',')})`;
    }),
  ];
  return terms.length === 0 ? '<none>' : terms.join(',');
}

const SET = /^(?<key>[^\s()!=<>]+)\s+(?<operator>in|notin)\s*\((?<values>[^()]*)\)$/;
const EQUALITY = /^(?<key>[^\s()!=<>]+)\s*(?<operator>==?|!=)\s*(?<value>[^\s()!=]*)$/;
const PRESENCE = /^(?<not>!?)\s*(?<key>[^\s()!=<>]+)$/;

/**
 * Reads the parameter `labelSelector`: `label=value`, `label!=value`, `label in (a, b)`, `label notin (a, b)`, `label` and
 * `!label`, all of them, separated by commas. Throws 400.
 */
export function parseLabelSelector(text: string): (labels: Labels | undefined) => boolean {
  const requirements = text
    .split(/,(?![^(]*\))/)
    .map((term) => term.trim())
    .filter((term) => term !== '')
    .map(parseRequirement);
  return (labels = {}) => fits(requirements, labels);
}

function parseRequirement(term: string): Requirement {
  const set = SET.exec(term)?.groups;
  if (set !== undefined) {
    const values = (set['values'] ?? '').split(',').map((value) => value.trim());
    return { key: set['key'] ?? '', operator: set['operator'] === 'in' ? 'In' : 'NotIn', values };
  }
  const equality = EQUALITY.exec(term)?.groups;
  if (equality !== undefined) {
    const operator = equality['operator'] === '!=' ? 'NotIn' : 'In';
    return { key: equality['key'] ?? '', operator, values: [equality['value'] ?? ''] };
  }
  const presence = PRESENCE.exec(term)?.groups;
  if (presence !== undefined) {
    return { key: presence['key'] ?? '', operator: presence['not'] ? 'DoesNotExist' : 'Exists', values: [] };
  }
  throw badRequest(
    `unable to parse label selector "${term}": write label=value, label!=value, label in (a,b), ` +
      'label notin (a,b), label or !label',
  );
}
