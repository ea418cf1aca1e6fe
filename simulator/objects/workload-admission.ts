import { isDeepStrictEqual } from 'node:util';
import type { Drafts } from './kinds.ts';
import { selectsLabels } from './label-selector.ts';
import { containerCauses, withPodDefaults } from './pod-spec.ts';
import type { StatusCause } from './status.ts';
import type { IntOrPercent, LabelSelector, PodTemplate } from './workload-kinds.ts';

/** The kinds that create pods from a template. */
export type WorkloadName = 'deployments' | 'replicasets' | 'statefulsets' | 'daemonsets';

const HISTORY_LIMIT = { revisionHistoryLimit: 10 };

/** The real server's defaults for a workload's spec. Upstream: `apps/v1/defaults.go`. */
export const workloadDefaults: {
  readonly [R in WorkloadName]: (spec: Drafts[R]['spec']) => Drafts[R]['spec'];
} = {
  deployments: (spec) => ({
    replicas: 1,
    progressDeadlineSeconds: 600,
    ...HISTORY_LIMIT,
    ...spec,
    strategy: withRollingDefaults(spec.strategy, { maxSurge: '25%', maxUnavailable: '25%' }),
    template: withTemplateDefaults(spec.template),
  }),
  replicasets: (spec) => ({ replicas: 1, ...spec, template: withTemplateDefaults(spec.template) }),
  statefulsets: (spec) => ({
    replicas: 1,
    podManagementPolicy: 'OrderedReady',
    persistentVolumeClaimRetentionPolicy: { whenDeleted: 'Retain', whenScaled: 'Retain' },
    ...HISTORY_LIMIT,
    ...spec,
    updateStrategy: withRollingDefaults(spec.updateStrategy, { partition: 0 }),
    template: withTemplateDefaults(spec.template),
  }),
  daemonsets: (spec) => ({
    ...HISTORY_LIMIT,
    ...spec,
    updateStrategy: withRollingDefaults(spec.updateStrategy, { maxSurge: 0, maxUnavailable: 1 }),
    template: withTemplateDefaults(spec.template),
  }),
};

type Strategy = Drafts['deployments']['spec']['strategy'];

function withRollingDefaults(strategy: Strategy, rolling: object): NonNullable<Strategy> {
  const { type = 'RollingUpdate', rollingUpdate, ...rest } = strategy ?? {};
  if (type !== 'RollingUpdate') return { ...strategy, type };
  return { ...rest, type, rollingUpdate: { ...rolling, ...rollingUpdate } };
}

const withTemplateDefaults = (template: PodTemplate): PodTemplate => ({
  ...template,
  spec: withPodDefaults(template.spec),
});

interface WorkloadSpec {
  readonly replicas?: number;
  readonly selector: LabelSelector;
  readonly template: PodTemplate;
}

/** Returns the faults of a workload's spec; empty when it is acceptable. */
export function workloadCauses(spec: WorkloadSpec): readonly StatusCause[] {
  const { replicas = 1, selector, template } = spec;
  const causes: StatusCause[] = [];
  if (replicas < 0) {
    causes.push(fault('spec.replicas', `Invalid value: ${replicas}: must be greater than or equal to 0`));
  }
  if (Object.keys(selector.matchLabels ?? {}).length + (selector.matchExpressions ?? []).length === 0) {
    causes.push({ reason: 'FieldValueRequired', message: 'Required value', field: 'spec.selector' });
  } else if (!selectsLabels(selector, template.metadata.labels)) {
    const labels = JSON.stringify(template.metadata.labels ?? {});
    causes.push(
      fault(
        'spec.template.metadata.labels',
        `Invalid value: ${labels}: \`selector\` does not match template \`labels\``,
      ),
    );
  }
  return [...causes, ...containerCauses('spec.template.spec', template.spec)];
}

/** The fields of a StatefulSet that may change after its creation. Upstream: `ValidateStatefulSetUpdate`. */
const CHANGEABLE_IN_STATEFUL_SET: readonly string[] = [
  'replicas',
  'ordinals',
  'template',
  'updateStrategy',
  'revisionHistoryLimit',
  'persistentVolumeClaimRetentionPolicy',
  'minReadySeconds',
];

/** Returns the reasons why a workload's spec must not change in this way; empty when it may. */
export function workloadUpdateCauses(
  resource: WorkloadName,
  before: WorkloadSpec,
  after: WorkloadSpec,
): readonly StatusCause[] {
  if (resource === 'statefulsets') {
    const [was, now] = [before, after].map((spec) =>
      Object.fromEntries(Object.entries(spec).filter(([name]) => !CHANGEABLE_IN_STATEFUL_SET.includes(name))),
    );
    if (isDeepStrictEqual(was, now)) return [];
    const message =
      'Forbidden: updates to statefulset spec for fields other than ' +
      `${CHANGEABLE_IN_STATEFUL_SET.slice(0, -1)
        .map((name) => `'${name}'`)
        .join(', ')} and 'minReadySeconds' are forbidden`;
    return [{ reason: 'FieldValueForbidden', message, field: 'spec' }];
  }
  if (isDeepStrictEqual(before.selector, after.selector)) return [];
  return [fault('spec.selector', `Invalid value: ${JSON.stringify(after.selector)}: field is immutable`)];
}

const PERCENTAGE = /^[0-9]+%$/;
const UNHEALTHY_POLICIES: readonly string[] = ['AlwaysAllow', 'IfHealthyBudget'];

/** Returns the faults of a disruption budget's spec. Upstream: `ValidatePodDisruptionBudgetSpec`. */
export function budgetCauses(spec: Drafts['poddisruptionbudgets']['spec']): readonly StatusCause[] {
  const { minAvailable, maxUnavailable, unhealthyPodEvictionPolicy: policy } = spec;
  const causes: StatusCause[] = [];
  if (minAvailable !== undefined && maxUnavailable !== undefined) {
    causes.push(fault('spec', 'Invalid value: minAvailable and maxUnavailable cannot be both set'));
  }
  causes.push(...shareCauses('spec.minAvailable', minAvailable));
  causes.push(...shareCauses('spec.maxUnavailable', maxUnavailable));
  if (policy !== undefined && !UNHEALTHY_POLICIES.includes(policy)) {
    const supported = UNHEALTHY_POLICIES.map((one) => `"${one}"`).join(', ');
    causes.push({
      reason: 'FieldValueNotSupported',
      message: `Unsupported value: "${policy}": supported values: ${supported}`,
      field: 'spec.unhealthyPodEvictionPolicy',
    });
  }
  return causes;
}

function shareCauses(field: string, share: IntOrPercent | undefined): readonly StatusCause[] {
  if (share === undefined) return [];
  if (typeof share === 'number') {
    return share < 0 ? [fault(field, `Invalid value: ${share}: must be greater than or equal to 0`)] : [];
  }
  if (!PERCENTAGE.test(share)) {
    const rule = "a valid percent string must be a numeric string followed by an ending '%'";
    return [fault(field, `Invalid value: "${share}": ${rule} (e.g. '1%', or '93%')`)];
  }
  if (Number.parseInt(share, 10) > 100) {
    return [fault(field, `Invalid value: "${share}": must not be greater than 100%`)];
  }
  return [];
}

const fault = (field: string, message: string): StatusCause => ({
  reason: 'FieldValueInvalid',
  message,
  field,
});
