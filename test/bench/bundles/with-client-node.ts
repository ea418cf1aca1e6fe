// The handler of `evict` as it would be if it called clusters by the generated client.
import { CoreV1Api, KubeConfig } from '@kubernetes/client-node';

export * from '../../../functions/evict/lambda.ts';
export const client = () => new KubeConfig().makeApiClient(CoreV1Api);
