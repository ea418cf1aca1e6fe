import { deadline } from '#shared/taints/deadline.ts';
import { INT64_MAX, INT64_MIN, parseInt64 } from '#shared/taints/int64.ts';
import { tolerates } from '#shared/taints/match.ts';
import { DOWN_KEYS, type MatchOptions, type Taint, type Toleration } from '#shared/taints/taint.ts';

/**
 * The severity of a finding. `error`: the API server rejects the toleration, or it never matches. `warning`: its
 * effect differs from its appearance. `note`: it may be intended.
 */
export type Level = 'error' | 'warning' | 'note';

/** The rules of lint; docs/reference/lint-rules.md explains each of them. */
export const LINT_RULES = {
  'unreadable-manifest': {
    level: 'error',
    title: 'The file is not YAML or JSON.',
    remediation: 'Lint rendered manifests: pipe helm template or kustomize build into taintward lint -f -.',
  },
  'unknown-effect': {
    level: 'error',
    title: 'The effect is unknown to Kubernetes, so no taint is tolerated.',
    remediation: 'Use NoExecute, NoSchedule, or PreferNoSchedule, or omit the effect to tolerate all three.',
  },
  'unknown-operator': {
    level: 'error',
    title: 'The operator is unknown to Kubernetes, so no taint is tolerated.',
    remediation: 'Use Exists or Equal.',
  },
  'empty-key': {
    level: 'error',
    title: 'Without a key, only the operator Exists is allowed.',
    remediation: 'Specify the key, or use operator: Exists, which tolerates every taint.',
  },
  'value-with-exists': {
    level: 'error',
    title: 'The operator Exists takes no value.',
    remediation: 'Remove the value, or use operator: Equal to tolerate only that value.',
  },
  'seconds-without-noexecute': {
    level: 'error',
    title: 'tolerationSeconds is only allowed with the effect NoExecute.',
    remediation: 'Use effect: NoExecute, or remove tolerationSeconds.',
  },
  'no-integer': {
    level: 'error',
    title: 'Lt and Gt require an integer value, so no taint is tolerated.',
    remediation: 'Use a 64-bit integer without leading zeros or a plus sign.',
  },
  'comparison-off': {
    level: 'warning',
    title: 'Lt and Gt match nothing if the feature gate TaintTolerationComparisonOperators is disabled.',
    remediation:
      'Use Equal or Exists. Or enable the feature gate, and start Taintward with --comparison-operators.',
  },
  shadowed: {
    level: 'warning',
    title: 'An earlier toleration matches everything that this one matches, and only the first match counts.',
    remediation: 'Put the more specific toleration first, or remove the ineffective one.',
  },
  'zero-seconds': {
    level: 'warning',
    title:
      'Tolerated for 0 s: the scheduler may place the pod on such a node, and the pod is evicted immediately.',
    remediation:
      'Remove the toleration, so that the pod is scheduled elsewhere, or increase tolerationSeconds.',
  },
  'replacement-loops': {
    level: 'warning',
    title: 'The replacement of an evicted pod may be scheduled to the same node and evicted again.',
    remediation:
      'Add a NoSchedule taint with a key that the pod does not tolerate. Or tolerate the taint indefinitely, or not at all.',
  },
  'unknown-key': {
    level: 'note',
    title: 'No node has a taint with this key.',
    remediation: 'Check the spelling. If the taint is no longer used, remove the toleration.',
  },
} as const satisfies Readonly<
  Record<string, { readonly level: Level; readonly title: string; readonly remediation: string }>
>;

export type LintRule = keyof typeof LINT_RULES;

/** One problem. */
export interface Finding {
  readonly rule: LintRule;
  readonly level: Level;
  /** A sentence. */
  readonly message: string;
  /** The remediation, as a sentence. */
  readonly remediation: string;
  /** Index of the toleration in its list, from 0; absent: the finding is not about one toleration. */
  readonly toleration?: number;
}

/** The tolerations of a manifest or an object that runs pods. */
export interface Template {
  /** The kind of the object that contains them: `Deployment`, `Pod`, ... */
  readonly kind: string;
  readonly tolerations: readonly Toleration[];
}

/** Inputs that decide the findings about tolerations. */
export interface LintContext {
  readonly matching: MatchOptions;
  /** Keys of all taints that nodes have or are known to have had; absent: unknown. */
  readonly keys?: ReadonlySet<string>;
}

/**
 * Returns the findings about tolerations, in their order. A toleration that the API server rejects is not checked
 * further.
 */
export function lintTemplate(template: Template, { matching, keys }: LintContext): readonly Finding[] {
  const { tolerations } = template;
  const findings: Finding[] = [];
  const good: (Toleration | undefined)[] = [];
  for (const [index, toleration] of tolerations.entries()) {
    const faults = faultsOf(toleration, matching);
    good.push(faults.length === 0 ? toleration : undefined);
    findings.push(...faults.map((rule) => finding(rule, index, `${textOf(index, toleration)}${SAYS[rule]}`)));
  }
  for (const [index, toleration] of good.entries()) {
    if (!toleration) continue;
    findings.push(
      ...[
        shadowOf(index, toleration, good, matching),
        limitOf(index, toleration, good, template.kind, matching),
        strangeKey(index, toleration, keys),
      ].filter((each) => each !== undefined),
    );
  }
  findings.push(...defaultLoops(template, good, matching));
  return findings.sort((a, b) => (a.toleration ?? tolerations.length) - (b.toleration ?? tolerations.length));
}

/** Returns a toleration in readable form: `key=value:NoExecute for 30 s`. */
export function tolerationText({ key, operator, value = '', effect, tolerationSeconds }: Toleration): string {
  const compared = { Exists: '', Lt: `<${value}`, Gt: `>${value}` }[operator ?? ''] ?? `=${value}`;
  const forSeconds = tolerationSeconds === undefined ? '' : ` for ${tolerationSeconds} s`;
  return `${key || 'every key'}${compared}${effect ? `:${effect}` : ''}${forSeconds}`;
}

const EFFECTS: readonly string[] = ['', 'NoExecute', 'NoSchedule', 'PreferNoSchedule'];
const OPERATORS: readonly string[] = ['', 'Equal', 'Exists', 'Lt', 'Gt'];

type Fault = Extract<
  LintRule,
  | 'unknown-effect'
  | 'unknown-operator'
  | 'empty-key'
  | 'value-with-exists'
  | 'seconds-without-noexecute'
  | 'no-integer'
  | 'comparison-off'
>;

const SAYS: Readonly<Record<Fault, string>> = {
  'unknown-effect': ' has an unknown effect, so it tolerates nothing.',
  'unknown-operator': ' has an unknown operator, so it tolerates nothing.',
  'empty-key': ' has no key, which only the operator Exists allows.',
  'value-with-exists': ' has a value, which the operator Exists does not allow.',
  'seconds-without-noexecute': ' has tolerationSeconds, which only the effect NoExecute allows.',
  'no-integer': ' has a value that is not a 64-bit integer, so it tolerates nothing.',
  'comparison-off':
    ' tolerates nothing if the feature gate TaintTolerationComparisonOperators is disabled, as by default.',
};

/** Returns why a toleration is rejected, or matches nothing. Upstream: `ValidateTolerations`. */
function faultsOf(
  { key = '', operator = '', value = '', effect = '', tolerationSeconds }: Toleration,
  { comparisonOperators }: MatchOptions,
): readonly Fault[] {
  const compares = operator === 'Lt' || operator === 'Gt';
  const faults: readonly (readonly [Fault, boolean])[] = [
    ['unknown-effect', !EFFECTS.includes(effect)],
    ['unknown-operator', !OPERATORS.includes(operator)],
    ['empty-key', key === '' && operator !== 'Exists'],
    ['value-with-exists', operator === 'Exists' && value !== ''],
    [
      'seconds-without-noexecute',
      tolerationSeconds !== undefined && effect !== 'NoExecute' && EFFECTS.includes(effect),
    ],
    ['no-integer', compares && parseInt64(value) === undefined],
    ['comparison-off', compares && parseInt64(value) !== undefined && !comparisonOperators],
  ];
  return faults.filter(([, is]) => is).map(([rule]) => rule);
}

/** A list of tolerations in which rejected ones are `undefined`. */
type Good = readonly (Toleration | undefined)[];

/**
 * Returns the finding about a toleration behind an earlier one that matches the same taints. Only the eviction uses
 * the first match; schedulers check whether any toleration matches.
 */
function shadowOf(
  index: number,
  toleration: Toleration,
  good: Good,
  matching: MatchOptions,
): Finding | undefined {
  const samples = samplesOf(toleration);
  const covers = (other: Toleration | undefined) =>
    other !== undefined && samples.every((taint) => tolerates(taint, other, matching));
  if (!matchesExecuting(toleration)) return undefined;
  const at = good.slice(0, index).findIndex(covers);
  const first = good[at];
  if (!first || secondsOf(first, samples, matching) === secondsOf(toleration, samples, matching))
    return undefined;
  return finding(
    'shadowed',
    index,
    `${textOf(index, toleration)} has no effect: ${textOf(at, first)} comes first and matches everything that it matches.`,
  );
}

/** Returns the finding about the limited duration of a toleration, if the toleration is the first match of a taint. */
function limitOf(
  index: number,
  toleration: Toleration,
  good: Good,
  kind: string,
  matching: MatchOptions,
): Finding | undefined {
  const decides = (taint: Taint) =>
    good.findIndex((each) => each && tolerates(taint, each, matching)) === index;
  const sample = samplesOf(toleration).find(decides);
  if (!sample || !matchesExecuting(toleration)) return undefined;
  const seconds = secondsOf(toleration, [sample], matching);
  if (seconds === undefined) return undefined;
  if (seconds === 0n) {
    const what = `${textOf(index, toleration)} lasts 0 s: the scheduler may place the pod on such a node, where it is evicted immediately.`;
    return finding('zero-seconds', index, what);
  }
  if (
    !isReplaced(kind) ||
    (DOWN_KEYS.includes(sample.key) && !staysSchedulable(sample.key, kind, good, matching))
  )
    return undefined;
  return finding(
    'replacement-loops',
    index,
    `${textOf(index, toleration)} lasts ${seconds} s, but the scheduler ignores the duration: the replacement may be scheduled to the same node, and is evicted again after ${seconds} s.`,
  );
}

/** Seconds that API servers give a pod without a toleration of its node being down (plugin DefaultTolerationSeconds). */
const DEFAULT_SECONDS = 300n;

/** Returns the same finding about the tolerations that a pod gets by default. */
function defaultLoops({ kind }: Template, good: Good, matching: MatchOptions): readonly Finding[] {
  if (!isReplaced(kind)) return [];
  const keys = DOWN_KEYS.filter(
    (key) => !good.some((each) => each && (!each.key || each.key === key) && matchesExecuting(each)),
  ).filter((key) => staysSchedulable(key, kind, good, matching));
  const [key] = keys;
  if (key === undefined) return [];
  const message = `${keys.map((each) => `${each}:NoSchedule`).join(' and ')} ${keys.length > 1 ? 'are' : 'is'} tolerated, but NoExecute only for the default ${DEFAULT_SECONDS} s: the replacement may be scheduled to the same node, and is evicted again.`;
  const toleration = good.findIndex(
    (each) => each && tolerates({ key, effect: 'NoSchedule' }, each, matching),
  );
  return [{ rule: 'replacement-loops', ...byRule('replacement-loops'), message, toleration }];
}

/**
 * Reports whether a pod may be scheduled to a node that is down. The node controller also adds a NoSchedule taint
 * with the key. Pods of DaemonSets tolerate both indefinitely.
 */
const staysSchedulable = (key: string, kind: string, good: Good, matching: MatchOptions): boolean =>
  kind !== 'DaemonSet' &&
  good.some((each) => each && tolerates({ key, effect: 'NoSchedule' }, each, matching));

/** Reports whether a controller replaces the pod. Bare pods are not replaced. */
const isReplaced = (kind: string): boolean => kind !== 'Pod';

/** Keys that Kubernetes and its clouds set, even if no node has them now. */
const WELL_KNOWN =
  /^(?:CriticalAddonsOnly|(?:[a-z0-9-]+\.)*(?:node\.kubernetes\.io|node\.cloudprovider\.kubernetes\.io|node-role\.kubernetes\.io)\/.*)$/;

function strangeKey(
  index: number,
  toleration: Toleration,
  keys: ReadonlySet<string> | undefined,
): Finding | undefined {
  const { key = '' } = toleration;
  if (key === '' || !keys || keys.has(key) || WELL_KNOWN.test(key)) return undefined;
  return finding(
    'unknown-key',
    index,
    `${textOf(index, toleration)} matches no taint that a node has, or is known to have had.`,
  );
}

const matchesExecuting = ({ effect = '' }: Toleration): boolean => effect === '' || effect === 'NoExecute';

/** A key and a value that no taint has. */
const ANY = ' ';

/**
 * Returns sample NoExecute taints. Any toleration that tolerates all of them tolerates everything that the given
 * toleration does.
 */
function samplesOf({ key, operator = '', value = '' }: Toleration): readonly Taint[] {
  const taint = (sample: string): Taint => ({ key: key || ANY, value: sample, effect: 'NoExecute' });
  const bound = parseInt64(value) ?? 0n;
  switch (operator) {
    case 'Exists':
      return [taint(ANY)];
    case 'Lt':
      return [taint(String(bound - 1n)), taint(String(INT64_MIN))];
    case 'Gt':
      return [taint(String(bound + 1n)), taint(String(INT64_MAX))];
    default:
      return [taint(value)];
  }
}

/** Returns for how many seconds the toleration tolerates the first sample; `undefined`: indefinitely. */
function secondsOf(
  toleration: Toleration,
  [sample]: readonly Taint[],
  matching: MatchOptions,
): bigint | undefined {
  if (!sample) return undefined;
  return deadline([toleration], [{ ...sample, since: 0 }], 0, matching)?.because[0]?.seconds;
}

const textOf = (index: number, toleration: Toleration): string =>
  `tolerations[${index}] (${tolerationText(toleration)})`;

const byRule = (rule: LintRule) => ({
  level: LINT_RULES[rule].level,
  remediation: LINT_RULES[rule].remediation,
});

const finding = (rule: LintRule, toleration: number, message: string): Finding => ({
  rule,
  ...byRule(rule),
  message,
  toleration,
});
