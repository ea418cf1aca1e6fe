import { parseInt64 } from './int64.ts';
import type { Effect, MatchOptions, Taint, Toleration } from './taint.ts';

/** The API server's kinds of field error. */
export type ProblemType =
  | 'FieldValueInvalid'
  | 'FieldValueRequired'
  | 'FieldValueNotSupported'
  | 'FieldValueDuplicate'
  | 'FieldValueForbidden';

/** A reason why an API server rejects a list of taints or tolerations. */
export interface Problem {
  /** For example `tolerations[0].key`. */
  readonly field: string;
  readonly type: ProblemType;
  /** One sentence that names the field and the fix. */
  readonly message: string;
}

const EFFECTS: readonly string[] = ['NoSchedule', 'PreferNoSchedule', 'NoExecute'] satisfies Effect[];

/** Why an API server would reject a node's taints, in list order. Upstream: `validateNodeTaints`. */
export function taintProblems(taints: readonly Taint[]): readonly Problem[] {
  const seen = new Set<string>();
  return taints.flatMap((taint, index) => {
    const path = `taints[${index}]`;
    const identity = JSON.stringify([taint.key, taint.effect]);
    const problems = [
      ...labelKeyFaults(taint.key).map((fault) => invalid(`${path}.key`, fault)),
      ...labelValueFaults(taint.value ?? '').map((fault) => invalid(`${path}.value`, fault)),
    ];
    if (taint.effect === '') {
      const fault = `is missing: write one of ${EFFECTS.join(', ')}`;
      problems.push(problem('FieldValueRequired', `${path}.effect`, fault));
    } else {
      problems.push(...effectProblems(`${path}.effect`, taint.effect));
    }
    if (seen.has(identity)) {
      const fault = 'repeats the key and effect of an earlier taint: keep one of them';
      problems.push(problem('FieldValueDuplicate', path, fault));
    }
    seen.add(identity);
    return problems;
  });
}

/** Why an API server would reject a new pod's tolerations, in list order. Upstream: `ValidateTolerations`. */
export function tolerationProblems(
  tolerations: readonly Toleration[],
  options: MatchOptions,
): readonly Problem[] {
  return tolerations.flatMap((toleration, index) => {
    const path = `tolerations[${index}]`;
    const { key = '', operator = '', effect = '', tolerationSeconds } = toleration;
    const problems: Problem[] = [];
    if (key !== '') problems.push(...labelKeyFaults(key).map((fault) => invalid(`${path}.key`, fault)));
    if (key === '' && operator !== 'Exists') {
      problems.push(
        invalid(`${path}.operator`, 'must be Exists when the key is empty: set it, or name a key'),
      );
    }
    if (tolerationSeconds !== undefined && effect !== 'NoExecute') {
      const fault = 'must be NoExecute when tolerationSeconds is set: set it, or drop tolerationSeconds';
      problems.push(invalid(`${path}.effect`, fault));
    }
    problems.push(...operatorProblems(path, operator, toleration.value ?? '', options));
    if (effect !== '') problems.push(...effectProblems(`${path}.effect`, effect));
    return problems;
  });
}

/**
 * Why an API server would reject tolerations for a live pod. They may be added and their seconds changed. A pod with
 * `Lt` or `Gt` may keep these, regardless of the gate. Upstream: `ValidatePodUpdate`.
 */
export function tolerationsUpdateProblems(
  tolerations: readonly Toleration[],
  oldTolerations: readonly Toleration[],
  options: MatchOptions,
): readonly Problem[] {
  const inUse = oldTolerations.some(({ operator }) => operator === 'Lt' || operator === 'Gt');
  const kept = oldTolerations.every((old) =>
    tolerations.some((toleration) => sameButSeconds(old, toleration)),
  );
  const fault = 'of a live pod may only be added or change their tolerationSeconds: keep the existing ones';
  return [
    ...tolerationProblems(tolerations, { comparisonOperators: options.comparisonOperators || inUse }),
    ...(kept ? [] : [problem('FieldValueForbidden', 'tolerations', fault)]),
  ];
}

/** As in upstream, a wrong value of Equal and Exists is reported on the operator. */
function operatorProblems(
  path: string,
  operator: string,
  value: string,
  options: MatchOptions,
): readonly Problem[] {
  const field = `${path}.operator`;
  switch (operator) {
    case '':
    case 'Equal':
      return labelValueFaults(value).map((fault) =>
        invalid(field, `needs another value: ${path}.value ${fault}`),
      );
    case 'Exists':
      return value === '' ? [] : [invalid(field, `is Exists, which takes no value: drop ${path}.value`)];
    case 'Lt':
    case 'Gt':
      if (!options.comparisonOperators) {
        const fault = `${operator} needs the feature gate TaintTolerationComparisonOperators: use Equal or Exists`;
        return [problem('FieldValueNotSupported', field, fault)];
      }
      if (parseInt64(value) !== undefined) return [];
      return [
        invalid(`${path}.value`, 'must be a 64-bit integer without leading zeros or plus sign, such as -5'),
      ];
    default:
      return [
        problem('FieldValueNotSupported', field, 'must be one of Equal, Exists, Lt, Gt, spelled like that'),
      ];
  }
}

function effectProblems(field: string, effect: string): readonly Problem[] {
  if (EFFECTS.includes(effect)) return [];
  return [
    problem('FieldValueNotSupported', field, `must be one of ${EFFECTS.join(', ')}, spelled like that`),
  ];
}

function sameButSeconds(a: Toleration, b: Toleration): boolean {
  return (
    (a.key ?? '') === (b.key ?? '') &&
    (a.operator ?? '') === (b.operator ?? '') &&
    (a.value ?? '') === (b.value ?? '') &&
    (a.effect ?? '') === (b.effect ?? '')
  );
}

function invalid(field: string, fault: string): Problem {
  return problem('FieldValueInvalid', field, fault);
}

function problem(type: ProblemType, field: string, fault: string): Problem {
  return { field, type, message: `${field} ${fault}.` };
}

/** Kubernetes' own limits, in bytes; a text that isn't ASCII is rejected for its characters anyway. */
const NAME_MAX_LENGTH = 63;
const VALUE_MAX_LENGTH = 63;
const PREFIX_MAX_LENGTH = 253;

const NAME = /^[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?$/;
const DNS_LABEL = /^[a-z0-9](?:[-a-z0-9]*[a-z0-9])?$/;
const DNS_SUBDOMAIN = /^[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*$/;

const NAME_RULE = "use letters, digits, '-', '_' and '.', with a letter or digit at both ends";
const DNS_LABEL_RULE = "use lower-case letters, digits and '-', with a letter or digit at both ends";
const DNS_RULE =
  "use lower-case letters, digits, '-' and '.', with a letter or digit at both ends of each part";

/**
 * Faults of a label key (optional DNS subdomain and `/`, then a name), as ends of a sentence that starts with the
 * field's name. Upstream: `content.IsLabelKey`.
 */
export function labelKeyFaults(key: string): readonly string[] {
  const parts = key.split('/');
  if (parts.length > 2)
    return ["must be a name with at most one prefix before a '/', for example example.com/gpu"];
  const name = parts.at(-1) ?? '';
  return [...(parts.length === 2 ? prefixFaults(parts[0] ?? '') : []), ...nameFaults(name)];
}

/** Returns the faults of a label value, in the same form. Upstream: `content.IsLabelValue`. */
export function labelValueFaults(value: string): readonly string[] {
  const faults: string[] = [];
  if (value.length > VALUE_MAX_LENGTH)
    faults.push(`must have at most ${VALUE_MAX_LENGTH} characters: shorten it`);
  if (value !== '' && !NAME.test(value)) faults.push(`has a character that is not allowed: ${NAME_RULE}`);
  return faults;
}

/** Returns the faults of a namespace's name, in the same form. Upstream: `content.IsDNS1123Label`. */
export const dnsLabelFaults = (name: string): readonly string[] =>
  dnsFaults(name, NAME_MAX_LENGTH, DNS_LABEL, DNS_LABEL_RULE);

/** Returns the faults of most other objects' names, in the same form. Upstream: `content.IsDNS1123Subdomain`. */
export const dnsSubdomainFaults = (name: string): readonly string[] =>
  dnsFaults(name, PREFIX_MAX_LENGTH, DNS_SUBDOMAIN, DNS_RULE);

function dnsFaults(name: string, most: number, form: RegExp, rule: string): readonly string[] {
  const faults: string[] = [];
  if (name.length > most) faults.push(`must have at most ${most} characters: shorten it`);
  if (!form.test(name)) faults.push(`has a character that is not allowed: ${rule}`);
  return faults;
}

function prefixFaults(prefix: string): readonly string[] {
  if (prefix === '') return ["has nothing before the '/': write a DNS subdomain there, or drop the '/'"];
  const faults: string[] = [];
  if (prefix.length > PREFIX_MAX_LENGTH) {
    faults.push(`must have at most ${PREFIX_MAX_LENGTH} characters before the '/': shorten the prefix`);
  }
  if (!DNS_SUBDOMAIN.test(prefix)) faults.push(`must have a DNS subdomain before the '/': ${DNS_RULE}`);
  return faults;
}

function nameFaults(name: string): readonly string[] {
  if (name === '') return ['must have a name: write one, for example maintenance'];
  const faults: string[] = [];
  if (name.length > NAME_MAX_LENGTH) {
    faults.push(`must have at most ${NAME_MAX_LENGTH} characters in its name: shorten it`);
  }
  if (!NAME.test(name)) faults.push(`has a character in its name that is not allowed: ${NAME_RULE}`);
  return faults;
}
