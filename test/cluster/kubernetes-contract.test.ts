import { kubernetesContract } from '#test/contracts/kubernetes-contract.ts';
import { RestCluster } from '#test/contracts/rest-cluster.ts';
import { connectionTo, runName } from './rig/test-cluster.ts';

/** A real server promises a bookmark about every minute. */
const WATCH_SECONDS = 75;

kubernetesContract('RestApi, on a real API server,', async () =>
  RestCluster.open(connectionTo('KUBECONFIG'), runName(), WATCH_SECONDS),
);
