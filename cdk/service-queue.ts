import { Duration, Stack, Validations } from 'aws-cdk-lib';
import {
  DeduplicationScope,
  FifoThroughputLimit,
  Queue,
  QueueEncryption,
  type QueueProps,
  RedrivePermission,
} from 'aws-cdk-lib/aws-sqs';
import { Construct } from 'constructs';
import type { deadLetterVariables, sourceVariables, ValuesOf } from '#shared/aws/environment.ts';
import { MAX_MESSAGE_BYTES } from '#shared/aws/limits.ts';
import {
  DEAD_LETTER_RETENTION_SECONDS,
  type QueueSpec,
  RETENTION_SECONDS,
  visibilitySeconds,
} from '#shared/aws/queue-set.ts';
import { defined } from '#shared/defined.ts';
import { dataKeyOf } from './data-key.ts';
import { type Grantee, grant } from './grantee.ts';

/** The actions that show how many messages a queue holds. */
const COUNT = ['sqs:GetQueueUrl', 'sqs:GetQueueAttributes'];

export interface ServiceQueueProps {
  readonly spec: QueueSpec;
  /** The prefix of all names in the stack. */
  readonly prefix: string;
}

/** A queue and its dead-letter queue, which accepts messages from no other queue. */
export class ServiceQueue extends Construct {
  readonly spec: QueueSpec;
  readonly queue: Queue;
  readonly deadLetters: DeadLetterQueue;

  constructor(scope: Construct, id: string, { spec, prefix }: ServiceQueueProps) {
    super(scope, id);
    this.spec = spec;
    const queueName = `${prefix}-${spec.name}`;
    this.deadLetters = new DeadLetterQueue(this, 'DeadLetters', {
      name: spec.deadLetterName,
      prefix,
      fifo: spec.fifo,
      source: queueName,
    });
    this.queue = new Queue(this, 'Queue', {
      ...commonProps(this, queueName, spec.fifo),
      retentionPeriod: Duration.seconds(RETENTION_SECONDS),
      visibilityTimeout: Duration.seconds(visibilitySeconds(spec)),
      deadLetterQueue: { queue: this.deadLetters.queue, maxReceiveCount: spec.maxReceiveCount },
    });
  }

  /** Allows a function to set unreadable messages aside. The event source adds the permission to receive. */
  bindSource(grantee: Grantee): void {
    grantee.setEnvironment({ SOURCE_QUEUE_URL: this.queue.queueUrl } satisfies ValuesOf<
      typeof sourceVariables
    >);
    this.deadLetters.bindSend(grantee);
  }

  /** Allows another process to receive the queue's messages, and to set unreadable ones aside. */
  bindTake(grantee: Grantee): void {
    const actions = ['sqs:ReceiveMessage', 'sqs:DeleteMessage', 'sqs:ChangeMessageVisibility'];
    grant(grantee, actions, [this.queue.queueArn]);
    this.deadLetters.bindSend(grantee);
  }

  grantSend(grantee: Grantee): void {
    grant(grantee, ['sqs:SendMessage'], [this.queue.queueArn]);
  }

  /** Allows an operator to see how many messages the queue and its dead-letter queue hold. */
  bindCount(grantee: Grantee): void {
    grant(grantee, COUNT, [this.queue.queueArn, this.deadLetters.queue.queueArn]);
  }

  /** Allows an operator to read its dead letters, and to resend them. */
  bindRedrive(grantee: Grantee): void {
    this.deadLetters.bindRead(grantee);
    grant(grantee, ['sqs:StartMessageMoveTask', 'sqs:DeleteMessage'], [this.deadLetters.queue.queueArn]);
    this.grantSend(grantee);
  }
}

export interface DeadLetterQueueProps {
  readonly name: string;
  readonly prefix: string;
  readonly fifo: boolean;
  /** The queue that moves failed messages here, by name, because it refers to this one. Absent: only functions send. */
  readonly source?: string;
}

/** A queue for messages that could not be read or handled. */
export class DeadLetterQueue extends Construct {
  readonly name: string;
  readonly queue: Queue;

  constructor(scope: Construct, id: string, { name, prefix, fifo, source }: DeadLetterQueueProps) {
    super(scope, id);
    this.name = name;
    const sourceArn = source && Stack.of(this).formatArn({ service: 'sqs', resource: source });
    this.queue = new Queue(this, 'Queue', {
      ...commonProps(this, `${prefix}-${name}`, fifo),
      retentionPeriod: Duration.seconds(DEAD_LETTER_RETENTION_SECONDS),
      redriveAllowPolicy: sourceArn
        ? {
            redrivePermission: RedrivePermission.BY_QUEUE,
            sourceQueues: [Queue.fromQueueArn(this, 'Source', sourceArn)],
          }
        : { redrivePermission: RedrivePermission.DENY_ALL },
    });
    if (!sourceArn) {
      Validations.of(this).acknowledge({
        id: 'AwsSolutions-SQS3',
        reason: 'It is a dead-letter queue: of a function, not of a queue.',
      });
    }
  }

  /** Allows an operator to see how many messages it holds. */
  bindCount(grantee: Grantee): void {
    grant(grantee, COUNT, [this.queue.queueArn]);
  }

  /** Allows an operator to read its messages, and to make them visible again. */
  bindRead(grantee: Grantee): void {
    grant(grantee, ['sqs:ReceiveMessage', 'sqs:ChangeMessageVisibility'], [this.queue.queueArn]);
  }

  bindSend(grantee: Grantee): void {
    grantee.setEnvironment({
      DEAD_LETTER_QUEUE_URL: this.queue.queueUrl,
    } satisfies ValuesOf<typeof deadLetterVariables>);
    grant(grantee, ['sqs:SendMessage'], [this.queue.queueArn]);
  }
}

function commonProps(scope: Construct, queueName: string, fifo: boolean): QueueProps {
  const encryptionMasterKey = dataKeyOf(scope);
  return {
    queueName,
    maxMessageSizeBytes: MAX_MESSAGE_BYTES,
    encryption: encryptionMasterKey ? QueueEncryption.KMS : QueueEncryption.SQS_MANAGED,
    ...defined({ encryptionMasterKey }),
    enforceSSL: true,
    ...(fifo
      ? {
          fifo: true,
          deduplicationScope: DeduplicationScope.MESSAGE_GROUP,
          fifoThroughputLimit: FifoThroughputLimit.PER_MESSAGE_GROUP_ID,
        }
      : {}),
  };
}
