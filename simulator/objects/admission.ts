import { isDeepStrictEqual } from 'node:util';
import type { MatchOptions, Taint, Toleration } from '#shared/taints/taint.ts';
import {
  type DefaultTolerationSeconds,
  tolerationProblems,
  withDefaultTolerations,
} from '#shared/taints/tolerations.ts';
import { type Problem, taintProblems } from '#shared/taints/validation.ts';
import type { TolerationObject } from './core-kinds.ts';
import {
  type Drafts,
  KINDS,
  type NodeObject,
  type Objects,
  type PodObject,
  type ResourceName,
} from './kinds.ts';
import { containerCauses, withPodDefaults } from './pod-spec.ts';
import { invalid, type StatusCause } from './status.ts';
import { tolerationsUpdateProblems } from './toleration-updates.ts';
import {
  budgetCauses,
  type WorkloadName,
  workloadCauses,
  workloadDefaults,
  workloadUpdateCauses,
} from './workload-admission.ts';

/** The feature gates of a cluster with default settings. */
export const FEATURE_GATES: MatchOptions = { comparisonOperators: false };

/** Returns a node's taints in the format of the matcher. */
export const taintsOf = ({ spec }: Pick<NodeObject, 'spec'>): readonly Taint[] =>
  (spec.taints ?? []).map(({ key, value, effect }) => ({
    key,
    ...(value === undefined ? {} : { value }),
    effect,
  }));

/** Returns a pod's tolerations in the format of the matcher. */
export const tolerationsOf = (tolerations: readonly TolerationObject[] = []): readonly Toleration[] =>
  tolerations.map(({ key, operator, value, effect, tolerationSeconds }) => ({
    ...(key === undefined ? {} : { key }),
    ...(operator === undefined ? {} : { operator }),
    ...(value === undefined ? {} : { value }),
    ...(effect === undefined ? {} : { effect }),
    ...(tolerationSeconds === undefined ? {} : { tolerationSeconds: BigInt(tolerationSeconds) }),
  }));

/** The defaults and checks of the server for objects of one kind before they are stored. */
export interface Admission<R extends ResourceName> {
  /** Returns a new object with its defaults. Throws `StatusError` (422) when it is not acceptable. */
  create(draft: Drafts[R]): Drafts[R];
  /**
   * Returns the new state of an object; metadata and (but for the status itself) status are settled. Throws `StatusError` (422)
   * when it is not acceptable.
   */
  update(current: Objects[R], next: Objects[R]): Objects[R];
}

export const admissions: { readonly [R in ResourceName]: Admission<R> } = {
  nodes: {
    create: (node) => {
      refuse('Node', node.metadata.name, nodeCauses(node));
      return node;
    },
    update: (_, node) => {
      refuse('Node', node.metadata.name, nodeCauses(node));
      return node;
    },
  },
  pods: {
    create: (draft) => {
      const pod = {
        ...draft,
        spec: {
          priority: 0,
          enableServiceLinks: true,
          preemptionPolicy: 'PreemptLowerPriority',
          ...withPodDefaults(draft.spec),
          tolerations: admitted('CREATE', draft.spec.tolerations),
        },
        status: { phase: 'Pending', qosClass: 'BestEffort' },
      };
      refuse('Pod', pod.metadata.name, [
        ...containerCauses('spec', pod.spec),
        ...causes('spec.', tolerationProblems(tolerationsOf(pod.spec.tolerations), FEATURE_GATES)),
      ]);
      return pod;
    },
    update: (current, draft) => {
      const pod = {
        ...draft,
        spec: { ...draft.spec, tolerations: admitted('UPDATE', draft.spec.tolerations) },
      };
      const [before, after] = [current.spec.tolerations, pod.spec.tolerations].map(tolerationsOf);
      refuse('Pod', pod.metadata.name, [
        ...causes('spec.', tolerationsUpdateProblems(after ?? [], before ?? [], FEATURE_GATES)),
        ...(isDeepStrictEqual(unchangeable(current), unchangeable(pod)) ? [] : [POD_SPEC_FORBIDDEN]),
      ]);
      return pod;
    },
  },
  events: {
    create: (event) => {
      const { namespace } = event.involvedObject;
      if (namespace !== undefined && namespace !== event.metadata.namespace) {
        refuse('Event', event.metadata.name, [
          {
            reason: 'FieldValueInvalid',
            message: `Invalid value: "${namespace}": does not match event.namespace`,
            field: 'involvedObject.namespace',
          },
        ]);
      }
      return event;
    },
    update: (_, event) => event,
  },
  namespaces: {
    create: (draft) => ({
      ...draft,
      metadata: {
        ...draft.metadata,
        labels: { ...draft.metadata.labels, 'kubernetes.io/metadata.name': draft.metadata.name ?? '' },
      },
      spec: { finalizers: ['kubernetes'], ...draft.spec },
      status: { phase: 'Active' },
    }),
    update: (_, namespace) => namespace,
  },
  deployments: workloadAdmission('deployments'),
  replicasets: workloadAdmission('replicasets'),
  statefulsets: workloadAdmission('statefulsets'),
  daemonsets: workloadAdmission('daemonsets'),
  poddisruptionbudgets: {
    create: ({ status, ...budget }) => {
      refuse('PodDisruptionBudget', budget.metadata.name, budgetCauses(budget.spec));
      return { ...budget, status: NO_DISRUPTIONS };
    },
    update: (_, budget) => {
      refuse('PodDisruptionBudget', budget.metadata.name, budgetCauses(budget.spec));
      return budget;
    },
  },
};

const NO_DISRUPTIONS = { disruptionsAllowed: 0, currentHealthy: 0, desiredHealthy: 0, expectedPods: 0 };

/** A workload's status belongs to its controller, so a new workload has none. */
function workloadAdmission<R extends WorkloadName>(resource: R): Admission<R> {
  const defaults = workloadDefaults[resource];
  return {
    create: (draft) => {
      const spec = defaults(draft.spec);
      refuse(KINDS[resource], draft.metadata.name, workloadCauses(spec));
      return { ...draft, spec, status: {} };
    },
    update: (current, draft) => {
      const spec = defaults(draft.spec);
      refuse(KINDS[resource], draft.metadata.name, [
        ...workloadCauses(spec),
        ...workloadUpdateCauses(resource, current.spec, spec),
      ]);
      return { ...draft, spec };
    },
  };
}

/** Returns the given tolerations, followed by those that the plugin `DefaultTolerationSeconds` appends. */
function admitted(operation: string, given: readonly TolerationObject[] = []): TolerationObject[] {
  const request = { operation, resource: 'pods', subresource: '' };
  const all = admitTolerations(request, tolerationsOf(given));
  const appended = all.slice(given.length).map(({ tolerationSeconds, ...toleration }) => ({
    ...toleration,
    ...(tolerationSeconds === undefined ? {} : { tolerationSeconds: Number(tolerationSeconds) }),
  }));
  return [...given, ...appended];
}

/** The API request that carries a pod's tolerations. */
interface AdmissionRequest {
  /** The operation in the terms of admission: `CREATE`, `UPDATE`, `DELETE` or `CONNECT`. */
  readonly operation: string;
  /** Lower-case plural, for example `pods`. */
  readonly resource: string;
  /** "" for the object itself. */
  readonly subresource: string;
}

/** Returns a pod's tolerations after the admission plugin `DefaultTolerationSeconds`, for a pod that is created or updated. */
export function admitTolerations(
  { operation, resource, subresource }: AdmissionRequest,
  tolerations: readonly Toleration[],
  defaults?: DefaultTolerationSeconds,
): readonly Toleration[] {
  if (resource !== 'pods' || subresource !== '') return tolerations;
  if (operation !== 'CREATE' && operation !== 'UPDATE') return tolerations;
  return withDefaultTolerations(tolerations, defaults);
}

const POD_SPEC_FORBIDDEN: StatusCause = {
  reason: 'FieldValueForbidden',
  message:
    'Forbidden: pod updates may not change fields other than `spec.containers[*].image`,' +
    '`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations)',
  field: 'spec',
};

/** Returns the parts of a live pod's spec that an update must not change. */
function unchangeable({
  spec: { tolerations, activeDeadlineSeconds, containers, ...rest },
}: PodObject): unknown {
  return [rest, containers.map(({ image, ...container }) => container)];
}

const nodeCauses = (node: Pick<NodeObject, 'spec'>) =>
  // The real server reports a node's taints under `metadata`.
  causes('metadata.', taintProblems(taintsOf(node)));

/** Converts problems to causes. A problem's sentence starts with its field, which a cause names separately. */
const causes = (prefix: string, problems: readonly Problem[]): StatusCause[] =>
  problems.map(({ field, type, message }) => ({
    reason: type,
    message: message.startsWith(`${field} `) ? message.slice(field.length + 1) : message,
    field: `${prefix}${field}`,
  }));

function refuse(kind: string, name: string | undefined, faults: readonly StatusCause[]): void {
  if (faults.length > 0) throw invalid(kind, name ?? '', faults);
}
