import { EVICTION_RULES } from '#functions/in-cluster/eviction-rules.ts';
import { KubernetesHistory } from '#functions/in-cluster/kubernetes-history.ts';
import { KubernetesLeases, LEASE_GROUP, LEASES } from '#functions/in-cluster/kubernetes-leases.ts';
import { KubernetesRulebook } from '#functions/in-cluster/kubernetes-rulebook.ts';
import { KubernetesStore } from '#functions/in-cluster/kubernetes-store.ts';
import { NODE_EVICTIONS, STATE_GROUP } from '#functions/in-cluster/node-eviction.ts';
import { clusterName } from '#shared/eviction/identity.ts';
import { historyContract } from '#test/contracts/history-contract.ts';
import { leaseContract } from '#test/contracts/lease-contract.ts';
import { rulebookContract } from '#test/contracts/rulebook-contract.ts';
import { storeContract } from '#test/contracts/store-contract.ts';
import { StatePlace } from './state-place.ts';

const own = clusterName('in-cluster');

storeContract('KubernetesStore, on a real API server,', async () => {
  const place = await StatePlace.open();
  const store = new KubernetesStore({ objects: place.objects(STATE_GROUP, NODE_EVICTIONS), own });
  return { store, close: () => place.close() };
});

historyContract('KubernetesHistory, on a real API server,', async () => {
  const place = await StatePlace.open();
  const store = new KubernetesStore({ objects: place.objects(STATE_GROUP, NODE_EVICTIONS), own });
  const history = new KubernetesHistory({ store, configMaps: place.objects('v1', 'configmaps') });
  return { store, history, notes: history, close: () => place.close() };
});

rulebookContract('KubernetesRulebook, on a real API server,', async () => {
  const place = await StatePlace.open();
  const rulebook = new KubernetesRulebook({ objects: place.objects(STATE_GROUP, EVICTION_RULES) });
  return { rulebook, close: () => place.close() };
});

leaseContract('KubernetesLeases, on a real API server,', async () => {
  const place = await StatePlace.open();
  const leases = new KubernetesLeases({ objects: place.objects(LEASE_GROUP, LEASES) });
  return { leases, close: () => place.close() };
});
