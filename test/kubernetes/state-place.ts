import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { loadAll } from 'js-yaml';
import { ApiError } from '#shared/kubernetes/api-error.ts';
import { fieldsOf, textOf } from '#shared/kubernetes/api-json.ts';
import type { Objects } from '#shared/kubernetes/objects.ts';
import { RestObjects } from '#shared/kubernetes/rest-objects.ts';
import { Transport } from '#shared/kubernetes/transport.ts';
import { AdminApi } from '#test/cluster/rig/admin-api.ts';
import { connectionTo, runName } from '#test/cluster/rig/test-cluster.ts';
import { until } from '#test/cluster/rig/until.ts';

const DEPLOY = join(import.meta.dirname, '../../deploy/in-cluster');
const CRDS = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';
/** How long a new kind may take to be served. */
const SERVED_WITHIN_MS = 15_000;

/** A namespace of a real API server that knows our kinds. */
export class StatePlace {
  readonly namespace = runName();
  readonly #api = new AdminApi(connectionTo('KUBECONFIG'));
  readonly #transport = new Transport(connectionTo('KUBECONFIG'));

  static async open(): Promise<StatePlace> {
    const place = new StatePlace();
    await installKinds(place.#api);
    const metadata = { name: place.namespace };
    await place.#api.create('/api/v1/namespaces', { apiVersion: 'v1', kind: 'Namespace', metadata });
    return place;
  }

  /** Those of one kind. */
  objects(group: string, resource: string): Objects {
    return new RestObjects(this.#transport, { group, resource, namespace: this.namespace });
  }

  async close(): Promise<void> {
    await this.#api.remove(`/api/v1/namespaces/${this.namespace}`);
    this.#api.close();
    this.#transport.close();
  }
}

/** Has the server know the kinds that the service keeps its state in; resolves when it serves them. */
export async function installKinds(api: AdminApi): Promise<void> {
  for (const file of ['node-eviction.yaml', 'eviction-rules.yaml']) {
    for (const crd of loadAll(readFileSync(join(DEPLOY, 'crds', file), 'utf8'))) {
      const { name } = fieldsOf(fieldsOf(crd)['metadata']);
      await api.create(CRDS, fieldsOf(crd)).catch((error: unknown) => {
        if (!(error instanceof ApiError && error.status === 409)) throw error;
      });
      const plural = textOf(name).split('.')[0];
      await until(`${textOf(name)} is served`, SERVED_WITHIN_MS, () =>
        api.read(`/apis/taintward.dev/v1/${plural}`).then(
          () => true,
          () => false,
        ),
      );
    }
  }
}
