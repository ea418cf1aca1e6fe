import {
  DEFAULT_LAPSE_SECONDS,
  TAKEOVER_GROUP,
  TAKEOVER_NAME,
  TAKEOVER_VERSION,
} from '#shared/kubernetes/takeover.ts';
import { PROOF_NODE } from '#shared/kubernetes/takeover-proof.ts';
import { NODE_NOT_READY, NODE_UNREACHABLE } from '#shared/taints/taint.ts';
import { celList, LABELS, type Manifest } from './manifest.ts';

/** Keys of the taints that the node controller adds to nodes that are down. */
export const NODE_CONTROLLER_KEYS: readonly string[] = [NODE_NOT_READY, NODE_UNREACHABLE];

const NAME = 'taintward-takeover-nodes';
const RENEWER = 'taintward-takeover';
const API_VERSION = `${TAKEOVER_GROUP}/${TAKEOVER_VERSION}`;
const ADMISSION = 'admissionregistration.k8s.io/v1';
const RBAC = 'rbac.authorization.k8s.io';

export interface NodeTakeover {
  /** A subset of {@link NODE_CONTROLLER_KEYS}. */
  readonly keys: readonly string[];
  readonly lapseSeconds: number;
}

export const NODE_TAKEOVER: NodeTakeover = {
  keys: NODE_CONTROLLER_KEYS,
  lapseSeconds: DEFAULT_LAPSE_SECONDS,
};

/** The comment above the objects of {@link nodeTakeover}. */
export const NODE_TAKEOVER_COMMENT = `
While Taintward is alive, admission removes the NoExecute taints that the node controller adds to nodes that
are down. Their NoSchedule twins stay, and Taintward treats them as NoExecute (policy: treatAsNoExecute). Taintward is alive while
the heartbeat of takeovers/live and the taint's timeAdded differ by less than the heartbeat timeout. The node controller retries
every few seconds: once the heartbeat expires, its taint is admitted, and the built-in controller evicts as upstream. Taints
without timeAdded, as kubectl sets them, are always admitted. Any error admits the taint.
Requires Kubernetes 1.36 (MutatingAdmissionPolicy v1). Apply the manifest twice with kubectl: an API server serves a new kind a moment later.`;

/** Only the relay writes the heartbeat: applying the manifest again doesn't change it. */
export const TAKEOVER_CRD: Manifest = {
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: `takeovers.${TAKEOVER_GROUP}`, labels: LABELS },
  spec: {
    group: TAKEOVER_GROUP,
    scope: 'Cluster',
    names: { kind: 'Takeover', listKind: 'TakeoverList', plural: 'takeovers', singular: 'takeover' },
    versions: [
      {
        name: TAKEOVER_VERSION,
        served: true,
        storage: true,
        additionalPrinterColumns: [{ name: 'Heartbeat', type: 'date', jsonPath: '.spec.heartbeat' }],
        schema: {
          openAPIV3Schema: {
            type: 'object',
            required: ['spec'],
            properties: {
              spec: {
                type: 'object',
                required: ['keys', 'lapseSeconds'],
                properties: {
                  keys: { type: 'array', minItems: 1, items: { type: 'string' } },
                  lapseSeconds: { type: 'integer', minimum: 1 },
                  heartbeat: { type: 'string', format: 'date-time' },
                  aliveSince: { type: 'string', format: 'date-time' },
                  withheld: { type: 'string' },
                },
              },
            },
          },
        },
      },
    ],
  },
};

/** `takeovers/live`, without a heartbeat. */
export const takeoverLive = ({ keys, lapseSeconds }: NodeTakeover): Manifest => ({
  apiVersion: API_VERSION,
  kind: 'Takeover',
  metadata: { name: TAKEOVER_NAME, labels: LABELS },
  spec: { keys, lapseSeconds },
});

const bindingOf = (name: string, spec: object): Manifest => ({
  apiVersion: ADMISSION,
  kind: 'MutatingAdmissionPolicyBinding',
  metadata: { name, labels: LABELS },
  spec: { policyName: name, ...spec },
});

/** The binding that puts the takeover in force. */
export const NODE_BINDING = bindingOf(NAME, {
  paramRef: { name: TAKEOVER_NAME, parameterNotFoundAction: 'Allow' },
});

/** Returns the objects of a takeover, in the order in which they are applied. */
export function nodeTakeover(takeover: NodeTakeover): readonly Manifest[] {
  return [TAKEOVER_CRD, takeoverLive(takeover), ...renewersRight(), nodePolicy(takeover), NODE_BINDING];
}

/** The relay may renew `takeovers/live` and prove that the takeover works. It may change nothing else. */
function renewersRight(): readonly Manifest[] {
  return [
    {
      apiVersion: `${RBAC}/v1`,
      kind: 'ClusterRole',
      metadata: { name: RENEWER, labels: LABELS },
      rules: [
        {
          apiGroups: [TAKEOVER_GROUP],
          resources: ['takeovers'],
          resourceNames: [TAKEOVER_NAME],
          verbs: ['get', 'patch'],
        },
        // Needed for dry runs. RBAC has no separate permission for them.
        { apiGroups: [''], resources: ['nodes'], resourceNames: [PROOF_NODE], verbs: ['create', 'patch'] },
      ],
    },
    {
      apiVersion: `${RBAC}/v1`,
      kind: 'ClusterRoleBinding',
      metadata: { name: RENEWER, labels: LABELS },
      roleRef: { apiGroup: RBAC, kind: 'ClusterRole', name: RENEWER },
      subjects: [{ apiGroup: RBAC, kind: 'Group', name: 'taintward-relay' }],
    },
  ];
}

/** Returns the policy that removes those taints at admission. */
export function nodePolicy({ keys, lapseSeconds }: NodeTakeover): Manifest {
  const downTaint = `t.effect == "NoExecute" && t.key in ${celList(keys)}`;
  return {
    apiVersion: ADMISSION,
    kind: 'MutatingAdmissionPolicy',
    metadata: { name: NAME, labels: LABELS },
    spec: {
      failurePolicy: 'Ignore',
      reinvocationPolicy: 'Never',
      paramKind: { apiVersion: API_VERSION, kind: 'Takeover' },
      matchConstraints: {
        matchPolicy: 'Equivalent',
        resourceRules: [
          { apiGroups: [''], apiVersions: ['v1'], operations: ['CREATE', 'UPDATE'], resources: ['nodes'] },
        ],
      },
      matchConditions: [
        {
          name: 'has-a-taint-of-the-node-controller',
          expression: `has(object.spec.taints) && object.spec.taints.exists(t, ${downTaint})`,
        },
      ],
      variables: [
        {
          name: 'admitted',
          // Without a heartbeat, this fails, which admits every taint; so does a heartbeat in the far future.
          expression: `object.spec.taints.filter(t, !(${downTaint} && has(t.timeAdded) &&
  timestamp(t.timeAdded) - timestamp(params.spec.heartbeat) < duration("${lapseSeconds}s") &&
  timestamp(params.spec.heartbeat) - timestamp(t.timeAdded) < duration("${lapseSeconds}s")))`,
        },
      ],
      mutations: [
        {
          patchType: 'JSONPatch',
          jsonPatch: {
            // Use plain maps of fields: a patch may contain a taint object up to 1.36, but not from 1.37 on.
            expression: `variables.admitted.size() == object.spec.taints.size() ? [] :
  [JSONPatch{op: "replace", path: "/spec/taints", value: variables.admitted.map(t, {"key": dyn(t.key), "effect": dyn(t.effect),
    ?"value": t.?value.optMap(v, dyn(v)), ?"timeAdded": t.?timeAdded.optMap(a, dyn(string(timestamp(a))))})}]`,
          },
        },
      ],
    },
  };
}
