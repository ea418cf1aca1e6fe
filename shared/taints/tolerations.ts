import { parseInt64 } from './int64.ts';
import { type MatchOptions, NODE_NOT_READY, NODE_UNREACHABLE, type Toleration } from './taint.ts';
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
  tolerations: readonly (Omit<Toleration, 'tolerationSeconds'> & { readonly tolerationSeconds?: unknown })[],
  options: MatchOptions,
): readonly Problem[] {
  return tolerations.flatMap((toleration, index) => {
    const path = `tolerations[${index}]`;
    const { key = '', operator = '', effect = '', tolerationSeconds } = toleration;
    const problems: Problem[] = [];
    if (key !== '') problems.push(...labelKeyFaults(key).map((fault) => invalid(`${path}.key`, fault)));
    if (key === '' && operator !== 'Exists') {
      problems.push(
        invalid(
          `${path}.operator`,
          'must be Exists when `key` is empty, which means "match all values and all keys"',
        ),
      );
    }
    if (tolerationSeconds !== undefined && effect !== 'NoExecute') {
      const fault = "must be 'NoExecute' when `tolerationSeconds` is set";
      problems.push(invalid(`${path}.effect`, fault));
    }
    problems.push(...operatorProblems(path, operator, toleration.value ?? '', options));
    if (effect !== '') problems.push(...effectProblems(`${path}.effect`, effect));
    return problems;
  });
}

/** The API server's flags `--default-not-ready-toleration-seconds` and `--default-unreachable-toleration-seconds`, not clamped. */
export interface DefaultTolerationSeconds {
  readonly notReady: bigint;
  readonly unreachable: bigint;
}

/** The defaults of an API server without these flags. */
export const UPSTREAM_DEFAULT_TOLERATION_SECONDS: DefaultTolerationSeconds = {
  notReady: 300n,
  unreachable: 300n,
};

/**
 * Returns tolerations as a pod gets them: admission appends one for not-ready and one for unreachable if they are
 * missing. Operator and value are ignored. Upstream: plugin `DefaultTolerationSeconds`.
 */
export function withDefaultTolerations(
  tolerations: readonly Toleration[],
  { notReady, unreachable } = UPSTREAM_DEFAULT_TOLERATION_SECONDS,
): readonly Toleration[] {
  const missing = (key: string, tolerationSeconds: bigint): readonly Toleration[] =>
    tolerations.some(
      (each) => (!each.key || each.key === key) && (!each.effect || each.effect === 'NoExecute'),
    )
      ? []
      : [{ key, operator: 'Exists', effect: 'NoExecute', tolerationSeconds }];
  return [...tolerations, ...missing(NODE_NOT_READY, notReady), ...missing(NODE_UNREACHABLE, unreachable)];
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
      return value === '' ? [] : [invalid(field, "is 'Exists': value must be empty")];
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
