import { after, before } from 'node:test';
import { nodeName } from '#shared/eviction/identity.ts';
import { systemClock } from '#shared/time/clock.ts';
import { type SimulatedApiServer, startApiServer } from '#simulator/api/server.ts';
import { ObjectStore } from '#simulator/objects/store.ts';
import { evictionContract } from '#test/contracts/eviction-contract.ts';
import { kubernetesContract } from '#test/contracts/kubernetes-contract.ts';
import { RestCluster } from '#test/contracts/rest-cluster.ts';

/** Number of changes that the server keeps. The number is small, so that history expires soon. */
const HISTORY_LIMIT = 50;
/** Duration after which the server ends a watch with a bookmark. */
const WATCH_SECONDS = 1;

let server: SimulatedApiServer;
before(async () => {
  server = await startApiServer(new ObjectStore({ clock: systemClock, historyLimit: HISTORY_LIMIT }));
});
after(() => server.close());

function openCluster(namespace: string): Promise<RestCluster> {
  const url = new URL(server.url);
  const requestOptions = async () => ({
    server: url,
    ca: server.certificate,
    headers: { Authorization: `Bearer ${server.token}` },
  });
  return RestCluster.open({ host: url.host, requestOptions }, namespace, WATCH_SECONDS);
}

kubernetesContract(
  'RestApi, on the simulated API server,',
  () => openCluster('contract'),
  async (cluster) => {
    const node = nodeName('forgotten');
    await cluster.createNode(node);
    const { resourceVersion } = (await cluster.api.getNode(node)) ?? {};
    for (let i = 0; i <= HISTORY_LIMIT; i++) await cluster.label(node);
    return resourceVersion ?? '';
  },
);

evictionContract('RestApi, on the simulated API server,', () => openCluster('evictions'));
