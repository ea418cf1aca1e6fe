import { RESOURCE_NAMES } from './objects/kinds.ts';
import { RESOURCES } from './resources.ts';

/** The release whose API is simulated, as far as it goes. */
export const KUBERNETES_VERSION = 'v1.36.3';

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
      const { kind, singularName, shortNames, namespaced, verbs, subresources } = RESOURCES[name];
      return [
        { name, singularName, namespaced, kind, verbs, shortNames },
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
        const { kind, namespaced } = RESOURCES[name];
        const scope = namespaced ? 'namespaces/{namespace}/' : '';
        const patch = {
          parameters: [{ name: 'fieldValidation', in: 'query', schema: { type: 'string' } }],
          responses: {},
          'x-kubernetes-action': 'patch',
          'x-kubernetes-group-version-kind': { group: '', version: 'v1', kind },
        };
        return [`/api/v1/${scope}${name}/{name}`, { patch }];
      }),
    ),
  },
};
