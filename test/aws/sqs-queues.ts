import {
  CreateQueueCommand,
  GetQueueAttributesCommand,
  SetQueueAttributesCommand,
  type SQSClient,
} from '@aws-sdk/client-sqs';
import { MAX_MESSAGE_BYTES } from '#shared/aws/limits.ts';
import {
  DEAD_LETTER_RETENTION_SECONDS,
  type QueueSpec,
  RETENTION_SECONDS,
  visibilitySeconds,
} from '#shared/aws/queue-set.ts';

/** The attributes of a high-throughput FIFO queue: limits and deduplication per message group. */
const HIGH_THROUGHPUT = {
  DeduplicationScope: 'messageGroup',
  FifoThroughputLimit: 'perMessageGroupId',
} as const;

export interface QueueUrls {
  readonly url: string;
  readonly dlqUrl: string;
}

/** Creates one queue with its dead-letter queue, or brings both up to date. */
export async function createQueue(client: SQSClient, spec: QueueSpec, prefix = ''): Promise<QueueUrls> {
  const dlqUrl = await ensureQueue(client, prefix + spec.deadLetterName, spec, {
    MessageRetentionPeriod: String(DEAD_LETTER_RETENTION_SECONDS),
  });
  const redrive = {
    deadLetterTargetArn: await queueArn(client, dlqUrl),
    maxReceiveCount: spec.maxReceiveCount,
  };
  const url = await ensureQueue(client, prefix + spec.name, spec, {
    MessageRetentionPeriod: String(RETENTION_SECONDS),
    RedrivePolicy: JSON.stringify(redrive),
  });
  return { url, dlqUrl };
}

/** Returns a queue's ARN. */
export async function queueArn(client: SQSClient, queueUrl: string): Promise<string> {
  const { Attributes } = await client.send(
    new GetQueueAttributesCommand({ QueueUrl: queueUrl, AttributeNames: ['QueueArn'] }),
  );
  const arn = Attributes?.['QueueArn'];
  if (arn === undefined) throw new Error(`queue ${queueUrl} did not tell its ARN`);
  return arn;
}

async function ensureQueue(
  client: SQSClient,
  name: string,
  spec: QueueSpec,
  attributes: Readonly<Record<string, string>>,
): Promise<string> {
  // Create the queue in two steps, because SQS rejects the creation of a queue that exists with other attributes.
  const created = await client.send(
    new CreateQueueCommand({
      QueueName: name,
      ...(spec.fifo ? { Attributes: { FifoQueue: 'true', ...HIGH_THROUGHPUT } } : {}),
    }),
  );
  if (created.QueueUrl === undefined) throw new Error(`queue ${name} was created without a URL`);
  const common = {
    VisibilityTimeout: String(visibilitySeconds(spec)),
    MaximumMessageSize: String(MAX_MESSAGE_BYTES),
  };
  await client.send(
    new SetQueueAttributesCommand({ QueueUrl: created.QueueUrl, Attributes: { ...common, ...attributes } }),
  );
  return created.QueueUrl;
}
