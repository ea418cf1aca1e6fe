import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { loadAll } from 'js-yaml';
import { ApiError } from '#shared/kubernetes/http/api-error.ts';
import { fieldsOf, textOf } from '#shared/kubernetes/http/api-json.ts';
import type { AdminApi } from './admin-api.ts';
import { until } from './until.ts';

const DEPLOY = join(import.meta.dirname, '../../../deploy/in-cluster');
const CRDS = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';

/** Returns the objects in a file of `deploy/in-cluster`. */
export const deployed = (file: string): readonly Readonly<Record<string, unknown>>[] =>
  loadAll(readFileSync(join(DEPLOY, file), 'utf8')).map(fieldsOf);

/**
 * Creates the custom resource definitions in which the service keeps its state, and leaves them there. Resolves when
 * the server serves them.
 */
export async function installKinds(api: AdminApi): Promise<void> {
  for (const crd of ['crds/node-eviction.yaml', 'crds/eviction-rules.yaml'].flatMap(deployed)) {
    await api.create(CRDS, crd).catch((error: unknown) => {
      if (!(error instanceof ApiError && error.status === 409)) throw error;
    });
    const name = textOf(fieldsOf(crd['metadata'])['name']);
    const path = `/apis/taintward.dev/v1/${name.split('.')[0]}`;
    const isServed = () =>
      api.read(path).then(
        () => true,
        () => false,
      );
    await until(`${name} is served`, isServed);
  }
}
