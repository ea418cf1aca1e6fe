// The handler of `evict` as it would be with the generated client for clusters.
import { CoreV1Api, KubeConfig } from '@kubernetes/client-node';

export * from '../../../functions/evict/lambda.ts';
export const client = () => new KubeConfig().makeApiClient(CoreV1Api);
