import { KubernetesStore } from '#functions/in-cluster/kubernetes-store.ts';
import { NODE_EVICTIONS, STATE_GROUP } from '#functions/in-cluster/node-eviction.ts';
import { clusterName } from '#shared/eviction/identity.ts';
import { storeContract } from '#test/contracts/store-contract.ts';
import { StatePlace } from './state-place.ts';

const own = clusterName('in-cluster');

storeContract('KubernetesStore, on a real API server,', async () => {
  const place = await StatePlace.open();
  const store = new KubernetesStore({ objects: place.objects(STATE_GROUP, NODE_EVICTIONS), own });
  return { store, close: () => place.close() };
});
