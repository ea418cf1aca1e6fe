import { API_VERSIONS, type ApiVersion, KINDS, RESOURCE_NAMES } from '../objects/kinds.ts';
import { REVIEWS } from './access-reviews.ts';
import { RESOURCES, type Subresource } from './resources.ts';

/** The release whose API is simulated, in part. */
export const KUBERNETES_VERSION = 'v1.36.3';

/** Returns the path of an API version: `v1` is below `/api`, every named group below `/apis`. */
export const pathOf = (apiVersion: string): string =>
  apiVersion.includes('/') ? `/apis/${apiVersion}` : `/api/${apiVersion}`;

export const GROUP_VERSIONS: readonly ApiVersion[] = [...new Set(Object.values(API_VERSIONS))];

const AUTHORIZATION = 'authorization.k8s.io/v1';

const group = (groupVersion: string) => {
  const [name = '', version = ''] = groupVersion.split('/');
  return { name, versions: [{ groupVersion, version }], preferredVersion: { groupVersion, version } };
};

const NAMED_GROUPS = [...GROUP_VERSIONS.filter((version) => version.includes('/')), AUTHORIZATION].map(group);

const subresourceEntry = (resource: string, namespaced: boolean, one: Subresource) => {
  const [version, groupName] = (one.apiVersion ?? '').split('/').reverse();
  return {
    name: `${resource}/${one.name}`,
    singularName: '',
    namespaced,
    ...(groupName ? { group: groupName, version } : {}),
    kind: one.kind,
    verbs: one.verbs,
  };
};

const resourceList = (groupVersion: ApiVersion) => ({
  kind: 'APIResourceList',
  apiVersion: 'v1',
  groupVersion,
  resources: RESOURCE_NAMES.filter((name) => API_VERSIONS[name] === groupVersion).flatMap((name) => {
    const { singularName, shortNames, namespaced, verbs, subresources, categories } = RESOURCES[name];
    return [
      {
        name,
        singularName,
        namespaced,
        kind: KINDS[name],
        verbs,
        shortNames,
        ...(categories === undefined ? {} : { categories }),
      },
      ...subresources.map((one) => subresourceEntry(name, namespaced, one)),
    ];
  }),
});

/** The discovery documents, by path: enough for kubectl to find its way. */
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
  '/apis': { kind: 'APIGroupList', apiVersion: 'v1', groups: NAMED_GROUPS },
  ...Object.fromEntries(
    NAMED_GROUPS.map((one) => [`/apis/${one.name}`, { kind: 'APIGroup', apiVersion: 'v1', ...one }]),
  ),
  ...Object.fromEntries(GROUP_VERSIONS.map((version) => [pathOf(version), resourceList(version)])),
  [pathOf(AUTHORIZATION)]: {
    kind: 'APIResourceList',
    apiVersion: 'v1',
    groupVersion: AUTHORIZATION,
    resources: REVIEWS.map(({ name, kind }) => ({
      name,
      singularName: kind.toLowerCase(),
      namespaced: false,
      kind,
      verbs: ['create'],
    })),
  },
};
