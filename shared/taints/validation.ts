import { parseInt64 } from './int64.ts';
import { labelKeyFaults, labelValueFaults } from './label-text.ts';
import type { Effect, MatchOptions, Taint, Toleration } from './taint.ts';

/** The API server's kinds of field error. */
export type ProblemType =
  | 'FieldValueInvalid'
  | 'FieldValueRequired'
  | 'FieldValueNotSupported'
  | 'FieldValueDuplicate'
  | 'FieldValueForbidden';

/** One reason for which an API server refuses a list of taints or tolerations. */
export interface Problem {
  /** For example `tolerations[0].key`. */
  readonly field: string;
  readonly type: ProblemType;
  /** One sentence that names the field and says what to do. */
  readonly message: string;
}

const EFFECTS: readonly string[] = ['NoSchedule', 'PreferNoSchedule', 'NoExecute'] satisfies Effect[];

/**
 * Why an API server would refuse a node's taints: all reasons, in list order; empty when it accepts them.
 * Upstream: `validateNodeTaints`.
 */
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

/**
 * Why an API server would refuse a new pod's tolerations: all reasons, in list order; empty when it accepts
 * them. Upstream: `ValidateTolerations`.
 */
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
 * Why an API server would refuse new tolerations for a live pod: all reasons; empty when it accepts them.
 * Tolerations may be added and their seconds changed. A pod that uses `Lt` or `Gt` already may go on using
 * them whatever the gate says. Upstream: `ValidatePodUpdate`.
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

/** A wrong value of Equal and Exists is reported on the operator, as upstream does. */
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
