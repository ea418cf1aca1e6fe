import { connectionTo, runName } from '#test/cluster/rig/test-cluster.ts';
import { evictionContract } from '#test/contracts/eviction-contract.ts';
import { kubernetesContract } from '#test/contracts/kubernetes-contract.ts';
import { RestCluster } from '#test/contracts/rest-cluster.ts';

/** A real server sends a bookmark about every minute, but leaves out a bookmark without a new version. */
const WATCH_SECONDS = 140;

const open = () => RestCluster.open(connectionTo('KUBECONFIG'), runName(), WATCH_SECONDS);

kubernetesContract('RestApi, on a real API server,', open);
evictionContract('RestApi, on a real API server,', open);
