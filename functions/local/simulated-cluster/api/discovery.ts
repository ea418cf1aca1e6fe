import { KINDS, RESOURCE_NAMES, type ResourceName } from '../objects/kinds.ts';

/** The release whose API is simulated, as far as it goes. */
export const KUBERNETES_VERSION = 'v1.36.3';

export type Verb = 'get' | 'list' | 'watch' | 'create' | 'update' | 'patch' | 'delete';

/** What discovery tells of one kind of object, beside the kind's name. */
interface Resource {
  readonly singularName: string;
  readonly shortNames: readonly string[];
  readonly namespaced: boolean;
  readonly verbs: readonly Verb[];
  readonly subresources: readonly Subresource[];
}

interface Subresource {
  readonly name: string;
  readonly kind: string;
  readonly verbs: readonly Verb[];
}

const READ: readonly Verb[] = ['get', 'list', 'watch'];
const WRITE: readonly Verb[] = ['create', 'update', 'patch', 'delete'];
const STATUS_VERBS: readonly Verb[] = ['get', 'patch', 'update'];

export const RESOURCES: { readonly [R in ResourceName]: Resource } = {
  nodes: {
    singularName: 'node',
    shortNames: ['no'],
    namespaced: false,
    verbs: [...READ, ...WRITE],
    subresources: [{ name: 'status', kind: 'Node', verbs: STATUS_VERBS }],
  },
  pods: {
    singularName: 'pod',
    shortNames: ['po'],
    namespaced: true,
    verbs: [...READ, ...WRITE],
    subresources: [
      { name: 'binding', kind: 'Binding', verbs: ['create'] },
      { name: 'status', kind: 'Pod', verbs: STATUS_VERBS },
    ],
  },
  events: {
    singularName: 'event',
    shortNames: ['ev'],
    namespaced: true,
    verbs: [...READ, ...WRITE],
    subresources: [],
  },
  namespaces: {
    singularName: 'namespace',
    shortNames: ['ns'],
    namespaced: false,
    // Deleting one would mean deleting all that is in it: not simulated.
    verbs: [...READ, 'create', 'update', 'patch'],
    subresources: [],
  },
};

const AUTHORIZATION = { groupVersion: 'authorization.k8s.io/v1', version: 'v1' };

const AUTHORIZATION_GROUP = {
  name: 'authorization.k8s.io',
  versions: [AUTHORIZATION],
  preferredVersion: AUTHORIZATION,
};

/** What the server says of itself, by path: enough for kubectl to find its way. */
export const DISCOVERY: Readonly<Record<string, object>> = {
  '/version': {
    major: '1',
    minor: '36',
    gitVersion: KUBERNETES_VERSION,
    gitCommit: '',
    gitTreeState: '',
    buildDate: '1970-01-01T00:00:00Z',
    goVersion: '',
    compiler: '',
    platform: 'simulated',
  },
  '/api': { kind: 'APIVersions', versions: ['v1'], serverAddressByClientCIDRs: [] },
  '/api/v1': {
    kind: 'APIResourceList',
    groupVersion: 'v1',
    resources: RESOURCE_NAMES.flatMap((name) => {
      const { singularName, shortNames, namespaced, verbs, subresources } = RESOURCES[name];
      return [
        { name, singularName, namespaced, kind: KINDS[name], verbs, shortNames },
        ...subresources.map((subresource) => ({
          name: `${name}/${subresource.name}`,
          singularName: '',
          namespaced,
          kind: subresource.kind,
          verbs: subresource.verbs,
        })),
      ];
    }),
  },
  '/apis': { kind: 'APIGroupList', apiVersion: 'v1', groups: [AUTHORIZATION_GROUP] },
  '/apis/authorization.k8s.io': { kind: 'APIGroup', apiVersion: 'v1', ...AUTHORIZATION_GROUP },
  '/apis/authorization.k8s.io/v1': {
    kind: 'APIResourceList',
    apiVersion: 'v1',
    groupVersion: AUTHORIZATION.groupVersion,
    resources: [
      {
        name: 'selfsubjectaccessreviews',
        singularName: 'selfsubjectaccessreview',
        namespaced: false,
        kind: 'SelfSubjectAccessReview',
        verbs: ['create'],
      },
    ],
  },
  '/openapi/v3': { paths: { 'api/v1': { serverRelativeURL: '/openapi/v3/api/v1' } } },
  '/openapi/v3/api/v1': {
    openapi: '3.0.0',
    info: { title: 'Simulated cluster', version: KUBERNETES_VERSION },
    // kubectl leaves checking a manifest to servers whose PATCH takes this parameter.
    paths: Object.fromEntries(
      RESOURCE_NAMES.map((name) => {
        const scope = RESOURCES[name].namespaced ? 'namespaces/{namespace}/' : '';
        const patch = {
          parameters: [{ name: 'fieldValidation', in: 'query', schema: { type: 'string' } }],
          responses: {},
          'x-kubernetes-action': 'patch',
          'x-kubernetes-group-version-kind': { group: '', version: 'v1', kind: KINDS[name] },
        };
        return [`/api/v1/${scope}${name}/{name}`, { patch }];
      }),
    ),
  },
};

/** Where a client asks what it may do. */
export const ACCESS_REVIEWS = '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews';
/** The answer: whoever holds the token may do everything. */
export const ACCESS_REVIEW = {
  kind: 'SelfSubjectAccessReview',
  apiVersion: 'authorization.k8s.io/v1',
  metadata: {},
  spec: {},
  status: { allowed: true },
};
