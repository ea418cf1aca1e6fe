import { API_VERSIONS, KINDS, RESOURCE_NAMES } from '../objects/kinds.ts';
import { GROUP_VERSIONS, KUBERNETES_VERSION, pathOf } from './discovery.ts';
import { RESOURCES } from './resources.ts';

const ROOT = '/openapi/v3';

/**
 * Returns the document that kubectl requests below `/openapi/v3` before it sends a manifest. The document declares a PATCH that
 * takes `fieldValidation`; without that, kubectl requests every kind's schema and validates by itself.
 */
export function openApiAt(path: string): object | undefined {
  if (path === ROOT) {
    const entries = GROUP_VERSIONS.map((version) => [
      pathOf(version).slice(1),
      { serverRelativeURL: `${ROOT}${pathOf(version)}` },
    ]);
    return { paths: Object.fromEntries(entries) };
  }
  const version = GROUP_VERSIONS.find((one) => path === `${ROOT}${pathOf(one)}`);
  if (version === undefined) return undefined;
  const paths = RESOURCE_NAMES.filter((name) => API_VERSIONS[name] === version).map((name) => {
    const scope = RESOURCES[name].namespaced ? 'namespaces/{namespace}/' : '';
    const [kindVersion = '', group = ''] = version.split('/').reverse();
    const patch = {
      parameters: [{ name: 'fieldValidation', in: 'query', schema: { type: 'string' } }],
      responses: {},
      'x-kubernetes-action': 'patch',
      'x-kubernetes-group-version-kind': { group, version: kindVersion, kind: KINDS[name] },
    };
    return [`${pathOf(version)}/${scope}${name}/{name}`, { patch }];
  });
  return {
    openapi: '3.0.0',
    info: { title: 'Simulated cluster', version: KUBERNETES_VERSION },
    // `kubectl explain` looks up a kind here and reports that the kind is missing.
    components: { schemas: {} },
    paths: Object.fromEntries(paths),
  };
}
