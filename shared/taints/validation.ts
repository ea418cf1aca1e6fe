import type { Effect, Taint } from './taint.ts';

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

export function effectProblems(field: string, effect: string): readonly Problem[] {
  if (EFFECTS.includes(effect)) return [];
  return [
    problem('FieldValueNotSupported', field, `must be one of ${EFFECTS.join(', ')}, spelled like that`),
  ];
}

export function invalid(field: string, fault: string): Problem {
  return problem('FieldValueInvalid', field, fault);
}

/** Returns a problem whose message is one sentence about the field. */
export function problem(type: ProblemType, field: string, fault: string): Problem {
  return { field, type, message: `${field} ${fault}.` };
}

/** Kubernetes' own limits, in bytes; a text that isn't ASCII is rejected for its characters anyway. */
const NAME_MAX_LENGTH = 63;
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
export const labelValueFaults = (value: string): readonly string[] =>
  value === '' ? [] : textFaults(value, NAME_MAX_LENGTH, NAME, NAME_RULE);

/** Returns the faults of a namespace's name, in the same form. Upstream: `content.IsDNS1123Label`. */
export const dnsLabelFaults = (name: string): readonly string[] =>
  textFaults(name, NAME_MAX_LENGTH, DNS_LABEL, DNS_LABEL_RULE);

/** Returns the faults of most other objects' names, in the same form. Upstream: `content.IsDNS1123Subdomain`. */
export const dnsSubdomainFaults = (name: string): readonly string[] =>
  textFaults(name, PREFIX_MAX_LENGTH, DNS_SUBDOMAIN, DNS_RULE);

function textFaults(text: string, most: number, form: RegExp, rule: string): readonly string[] {
  const faults: string[] = [];
  if (text.length > most) faults.push(`must have at most ${most} characters: shorten it`);
  if (!form.test(text)) faults.push(`has a character that is not allowed: ${rule}`);
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
