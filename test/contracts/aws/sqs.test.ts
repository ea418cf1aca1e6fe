import { SQSClient } from '@aws-sdk/client-sqs';
import { awsClientConfig, awsEndpoint } from '#test/aws/endpoint.ts';
import { queueContract } from '../queue-contract.ts';

queueContract('SQS', async () => {
  const endpoint = await awsEndpoint();
  const client = new SQSClient({ ...awsClientConfig(endpoint.url), useQueueUrlAsEndpoint: false });
  const close = async () => {
    client.destroy();
    await endpoint.close();
  };
  return { client, close };
});
