import { API_VERSIONS, type ApiVersion, KINDS, RESOURCE_NAMES } from '../objects/kinds.ts';
import { allSchemas } from '../objects/schema.ts';
import { GROUP_VERSIONS, KUBERNETES_VERSION, pathOf } from './discovery.ts';
import { RESOURCES } from './resources.ts';

const ROOT = '/openapi/v3';

/** What the server says of its API at a path below `/openapi/v3`; `undefined`: nothing. */
export function openApiAt(path: string): object | undefined {
  if (path === ROOT) {
    const entries = GROUP_VERSIONS.map((version) => [
      pathOf(version).slice(1),
      { serverRelativeURL: `${ROOT}${pathOf(version)}` },
    ]);
    return { paths: Object.fromEntries(entries) };
  }
  const version = GROUP_VERSIONS.find((one) => path === `${ROOT}${pathOf(one)}`);
  return version === undefined ? undefined : documentOf(version);
}

const documentOf = (version: ApiVersion) => ({
  openapi: '3.0.0',
  info: { title: 'Simulated cluster', version: KUBERNETES_VERSION },
  components: { schemas: allSchemas() },
  // kubectl leaves checking a manifest to servers whose PATCH takes this parameter.
  paths: Object.fromEntries(
    RESOURCE_NAMES.filter((name) => API_VERSIONS[name] === version).map((name) => {
      const scope = RESOURCES[name].namespaced ? 'namespaces/{namespace}/' : '';
      const [kindVersion = '', group = ''] = version.split('/').reverse();
      const patch = {
        parameters: [{ name: 'fieldValidation', in: 'query', schema: { type: 'string' } }],
        responses: {},
        'x-kubernetes-action': 'patch',
        'x-kubernetes-group-version-kind': { group, version: kindVersion, kind: KINDS[name] },
      };
      return [`${pathOf(version)}/${scope}${name}/{name}`, { patch }];
    }),
  ),
});
