import { parseInt64 } from './int64.ts';
import type { MatchOptions, Toleration } from './taint.ts';
import {
  effectProblems,
  invalid,
  labelKeyFaults,
  labelValueFaults,
  type Problem,
  problem,
} from './validation.ts';

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

function sameButSeconds(a: Toleration, b: Toleration): boolean {
  return (
    (a.key ?? '') === (b.key ?? '') &&
    (a.operator ?? '') === (b.operator ?? '') &&
    (a.value ?? '') === (b.value ?? '') &&
    (a.effect ?? '') === (b.effect ?? '')
  );
}
