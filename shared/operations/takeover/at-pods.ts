import { isDeepStrictEqual } from 'node:util';
import { DEFAULT_NAMESPACE } from '#shared/state/objects/kubernetes-state.ts';
import { TAKEOVER_ANNOTATION } from '#shared/taints/takeover-note.ts';
import { NODE_CONTROLLER_KEYS } from './at-nodes.ts';
import {
  celList,
  celText,
  LABELS,
  type Manifest,
  OUR_LABEL,
  OUR_NAME,
  type Requirement,
} from './manifest.ts';

const NAME = 'taintward-takeover-pods';
const ADMISSION = 'admissionregistration.k8s.io/v1';
/** The label that opts namespaces in, and namespaces and pods out. */
export const TAKEOVER_LABEL = 'taintward.dev/takeover';
/** Values that opt in: the current one, and the former one, which clusters may still have. */
export const OPTED_IN: readonly string[] = ['enabled', 'on'];
/** Values that opt out: the current one and the former one. */
export const OPTED_OUT: readonly string[] = ['disabled', 'off'];
const NOTE = celText(TAKEOVER_ANNOTATION);
/**
 * Namespaces that the service itself needs, and its own. Their pods are never taken over, because the service
 * can't wait for itself.
 */
const NEVER = ['kube-system', 'kube-node-lease', DEFAULT_NAMESPACE];

export interface PodTakeover {
  readonly keys: readonly string[];
  /** Seconds by which the built-in controller evicts later. */
  readonly fallbackSeconds: number;
  /** Selector of the namespaces whose pods are taken over. */
  readonly namespaces: readonly Requirement[];
}

export const POD_TAKEOVER: PodTakeover = {
  keys: NODE_CONTROLLER_KEYS,
  fallbackSeconds: 3600,
  namespaces: [{ key: TAKEOVER_LABEL, operator: 'In', values: OPTED_IN }],
};

/** The comment above the objects of a pod-level takeover. */
export const POD_TAKEOVER_COMMENT = `
Pod-level takeover. For each key, admission adds the fallback delay to the seconds of the deciding toleration, which is the first
that matches, as upstream. The annotation ${TAKEOVER_ANNOTATION} records this: "<key>=<own>+<fallback>,...". The
built-in controller waits for both, Taintward only for the pod's own seconds. A wildcard toleration stays unchanged: a toleration
for the key is inserted before it. Pods that tolerate the taint indefinitely stay unchanged, and so do DaemonSets and static pods.
CREATE changes every pod of the selected namespaces. UPDATE changes only pods with the annotation, so that both stay consistent
(kubectl apply, GitOps, webhooks). A pod that bypasses admission is evicted as usual. No error prevents the creation of pods.`;

const NAME_LABEL = 'kubernetes.io/metadata.name';
/** Requirements that exclude namespaces, however they are selected. */
const KEPT_OUT: readonly Requirement[] = [
  { key: NAME_LABEL, operator: 'NotIn', values: NEVER },
  { key: TAKEOVER_LABEL, operator: 'NotIn', values: OPTED_OUT },
];
/** Requirement that excluded namespaces before the value was renamed. */
const FORMERLY_KEPT_OUT: Requirement = { key: TAKEOVER_LABEL, operator: 'NotIn', values: ['off'] };

/** Returns the selector of the namespaces that a takeover applies to. */
export const selectedNamespaces = (namespaces: readonly Requirement[]): readonly Requirement[] => [
  ...KEPT_OUT,
  ...namespaces,
];

/**
 * Returns the chosen namespaces from a selector that {@link selectedNamespaces} made, in this release or the
 * previous one.
 */
export const chosenNamespaces = (selected: readonly Requirement[]): readonly Requirement[] =>
  // The first requirement excludes names, which differ by release.
  selected
    .slice(1)
    .filter((each) => ![...KEPT_OUT, FORMERLY_KEPT_OUT].some((out) => isDeepStrictEqual(each, out)));

/** The binding that puts the takeover in force. */
export const POD_BINDING: Manifest = {
  apiVersion: ADMISSION,
  kind: 'MutatingAdmissionPolicyBinding',
  metadata: { name: NAME, labels: LABELS },
  spec: { policyName: NAME },
};

/**
 * Returns the objects of a pod-level takeover, in the order in which they are applied. Requires Kubernetes
 * 1.36.
 */
export function podTakeover(takeover: PodTakeover): readonly Manifest[] {
  return [
    {
      apiVersion: ADMISSION,
      kind: 'MutatingAdmissionPolicy',
      metadata: { name: NAME, labels: LABELS },
      spec: { failurePolicy: 'Ignore', reinvocationPolicy: 'IfNeeded', ...mutatingSpec(takeover) },
    },
    POD_BINDING,
  ];
}

/**
 * Returns the same for Kyverno (1.18 or later), for API servers before 1.36. Its MutatingPolicy also uses
 * CEL.
 */
export function kyvernoPodTakeover(takeover: PodTakeover): readonly Manifest[] {
  return [
    {
      apiVersion: 'policies.kyverno.io/v1',
      kind: 'MutatingPolicy',
      metadata: { name: NAME, labels: LABELS },
      spec: {
        failurePolicy: 'Ignore',
        reinvocationPolicy: 'IfNeeded',
        // Only pods are changed, and only when they are created or updated. The templates of their
        // controllers stay unchanged.
        autogen: { podControllers: { controllers: [] } },
        evaluation: { admission: { enabled: true }, mutateExisting: { enabled: false } },
        ...mutatingSpec(takeover),
      },
    },
  ];
}

/** Returns the common part of both kinds of policies. */
function mutatingSpec({ keys, fallbackSeconds, namespaces }: PodTakeover): object {
  return {
    matchConstraints: {
      matchPolicy: 'Equivalent',
      namespaceSelector: { matchExpressions: selectedNamespaces(namespaces) },
      resourceRules: [
        { apiGroups: [''], apiVersions: ['v1'], operations: ['CREATE', 'UPDATE'], resources: ['pods'] },
      ],
    },
    matchConditions: MATCH_CONDITIONS,
    variables: [
      { name: 'fallback', expression: String(fallbackSeconds) },
      { name: 'keys', expression: celList(keys) },
      ...VARIABLES,
    ],
    mutations: [{ patchType: 'JSONPatch', jsonPatch: { expression: PATCH } }],
  };
}

const noted = (object: string) =>
  `(has(${object}.metadata.annotations) && ${NOTE} in ${object}.metadata.annotations)`;

const notLabelled = (label: string, ...values: readonly string[]) =>
  `!has(object.metadata.labels) || !(${celText(label)} in object.metadata.labels) || ${values.map((value) => `object.metadata.labels[${celText(label)}] != ${celText(value)}`).join(' && ')}`;

const MATCH_CONDITIONS = [
  {
    name: 'made-or-taken-over',
    expression: `request.operation == "CREATE" || ${noted('object')} || ${noted('oldObject')}`,
  },
  { name: 'not-opted-out', expression: notLabelled(TAKEOVER_LABEL, ...OPTED_OUT) },
  // Taintward's own pods, in any namespace.
  { name: 'not-our-own', expression: notLabelled(OUR_LABEL, OUR_NAME) },
  { name: 'not-leaving', expression: '!has(object.metadata.deletionTimestamp)' },
  {
    name: 'not-a-mirror-pod',
    expression:
      '!has(object.metadata.annotations) || !("kubernetes.io/config.mirror" in object.metadata.annotations)',
  },
];

const VARIABLES = [
  {
    name: 'tolerations',
    expression: 'has(object.spec.tolerations) ? object.spec.tolerations : []',
  },
  // The annotation now and before this update.
  {
    name: 'note',
    expression: `${noted('object')} ? object.metadata.annotations[${NOTE}] : ""`,
  },
  {
    name: 'noteBefore',
    expression: `request.operation == "UPDATE" && ${noted('oldObject')} ? oldObject.metadata.annotations[${NOTE}] : ""`,
  },
  // The entries of both annotations, the previous one first, because this update cannot forge it. Other text
  // is ignored.
  {
    name: 'entries',
    expression: `[variables.noteBefore, variables.note].filter(n, n.size() < 1000).map(n, n.split(",")).flatten()
  .filter(e, e.matches("^[A-Za-z0-9._/-]+=[0-9]{1,10}[+][1-9][0-9]{0,9}$"))`,
  },
  // For each key, the indexes of the tolerations that match the node controller's taint. The first one
  // decides.
  {
    name: 'matching',
    expression: `variables.keys.map(k, variables.tolerations.transformList(i, t,
  (!has(t.effect) || t.effect == "" || t.effect == "NoExecute") &&
  (!has(t.key) || t.key == "" || t.key == k) &&
  (has(t.operator) && t.operator == "Exists" ||
    (!has(t.operator) || t.operator == "" || t.operator == "Equal") && (!has(t.value) || t.value == "")),
  i))`,
  },
  // For each key, the seconds that the built-in controller would wait. -1: indefinitely, or too long to
  // matter.
  {
    name: 'seconds',
    expression: `variables.matching.map(m, m.size() == 0 ? 0 :
  !has(variables.tolerations[m[0]].tolerationSeconds) || variables.tolerations[m[0]].tolerationSeconds > 2147483647 ? -1 :
  variables.tolerations[m[0]].tolerationSeconds < 0 ? 0 : variables.tolerations[m[0]].tolerationSeconds)`,
  },
  // For each key, the entries that already describe the present state.
  {
    name: 'described',
    expression: `variables.keys.transformList(n, k, variables.entries.filter(e, e.startsWith(k + "=") && variables.matching[n].size() > 0 &&
  int(e.split("=")[1].split("+")[0]) + int(e.split("+")[1]) == variables.seconds[n]))`,
  },
  // The annotation that the pod should have.
  {
    name: 'noteWanted',
    expression: `variables.keys.transformList(n, k, variables.seconds[n] >= 0, variables.described[n].size() > 0
  ? variables.described[n][0]
  : k + "=" + string(variables.seconds[n]) + "+" + string(variables.fallback)).join(",")`,
  },
  // For each key, true if its toleration still lacks the fallback.
  {
    name: 'due',
    expression:
      'variables.keys.transformList(n, k, variables.seconds[n] >= 0 && variables.described[n].size() == 0)',
  },
  // For each key, true if the deciding toleration is only for that key.
  {
    name: 'ownKey',
    expression: `variables.keys.transformList(n, k, variables.matching[n].size() > 0 &&
  has(variables.tolerations[variables.matching[n][0]].key) && variables.tolerations[variables.matching[n][0]].key == k)`,
  },
];

// Replace before adding: adding moves the indexes of later tolerations.
const PATCH = `(variables.noteWanted == "" || variables.noteWanted == variables.note ? [] :
  (has(object.metadata.annotations) ? [] : [JSONPatch{op: "add", path: "/metadata/annotations", value: {}}]) +
  [JSONPatch{op: "add", path: "/metadata/annotations/" + jsonpatch.escapeKey(${NOTE}), value: variables.noteWanted}])
+ (!has(object.spec.tolerations) && variables.due.exists(d, d)
  ? [JSONPatch{op: "add", path: "/spec/tolerations", value: []}] : [])
+ variables.keys.transformList(n, k, variables.due[n] && variables.ownKey[n],
  JSONPatch{op: "replace", path: "/spec/tolerations/" + string(variables.matching[n][0]) + "/tolerationSeconds",
    value: variables.seconds[n] + variables.fallback})
+ variables.keys.transformList(n, k, variables.due[n] && !variables.ownKey[n],
  JSONPatch{op: "add", path: "/spec/tolerations/0",
    value: Object.spec.tolerations{key: k, operator: "Exists", effect: "NoExecute",
      tolerationSeconds: variables.seconds[n] + variables.fallback}})`;
