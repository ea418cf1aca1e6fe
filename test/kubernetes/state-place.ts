import { Transport } from '#shared/kubernetes/http/transport.ts';
import type { Objects } from '#shared/kubernetes/objects.ts';
import { RestObjects } from '#shared/kubernetes/rest-objects.ts';
import { AdminApi } from '#test/cluster/rig/admin-api.ts';
import { installKinds } from '#test/cluster/rig/installed-kinds.ts';
import { connectionTo, runName } from '#test/cluster/rig/test-cluster.ts';

/** A namespace of a real API server with the project's custom resource definitions. */
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

  /** Returns the objects of one kind. */
  objects(group: string, resource: string): Objects {
    return new RestObjects(this.#transport, { group, resource, namespace: this.namespace });
  }

  async close(): Promise<void> {
    await this.#api.remove(`/api/v1/namespaces/${this.namespace}`);
    this.#api.close();
    this.#transport.close();
  }
}
