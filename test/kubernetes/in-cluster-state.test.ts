import { clusterName } from '#shared/eviction/identity.ts';
import { EVICTION_RULES } from '#shared/state/objects/eviction-rules.ts';
import { kubernetesHistory } from '#shared/state/objects/kubernetes-history.ts';
import { KubernetesStore } from '#shared/state/objects/kubernetes-store.ts';
import { NODE_EVICTIONS, STATE_GROUP } from '#shared/state/objects/node-eviction.ts';
import { LEASE_GROUP, LEASES, ObjectLeases } from '#shared/state/objects/object-leases.ts';
import { objectPermits } from '#shared/state/objects/object-permits.ts';
import { ObjectRulesStore } from '#shared/state/objects/object-rules-store.ts';
import { historyContract } from '#test/contracts/history-contract.ts';
import { leaseContract } from '#test/contracts/lease-contract.ts';
import { permitsContract } from '#test/contracts/permits-contract.ts';
import { rulesStoreContract } from '#test/contracts/rules-store-contract.ts';
import { storeContract } from '#test/contracts/store-contract.ts';
import { StatePlace } from './state-place.ts';

const own = clusterName('in-cluster');

storeContract('KubernetesStore, on a real API server,', async () => {
  const place = await StatePlace.open();
  const store = new KubernetesStore({ objects: place.objects(STATE_GROUP, NODE_EVICTIONS), own });
  return { store, close: () => place.close() };
});

historyContract('kubernetesHistory, on a real API server,', async () => {
  const place = await StatePlace.open();
  const store = new KubernetesStore({ objects: place.objects(STATE_GROUP, NODE_EVICTIONS), own });
  const history = kubernetesHistory(store, place.objects('v1', 'configmaps'));
  return { store, history, notes: history, close: () => place.close() };
});

rulesStoreContract('ObjectRulesStore, on a real API server,', async () => {
  const place = await StatePlace.open();
  const rulesStore = new ObjectRulesStore({ objects: place.objects(STATE_GROUP, EVICTION_RULES) });
  return { rulesStore, close: () => place.close() };
});

leaseContract('ObjectLeases, on a real API server,', async () => {
  const place = await StatePlace.open();
  const leases = new ObjectLeases(place.objects(LEASE_GROUP, LEASES));
  return { leases, close: () => place.close() };
});

permitsContract(
  'objectPermits, on a real API server,',
  async () => {
    const place = await StatePlace.open();
    return { open: () => objectPermits(place.objects('v1', 'configmaps')), close: () => place.close() };
  },
  { shared: true, histories: 2 },
);
