import { Duration, Stack, Validations } from 'aws-cdk-lib';
import { Grant } from 'aws-cdk-lib/aws-iam';
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
import type { Grantee } from './grantee.ts';

export interface ServiceQueueProps {
  readonly spec: QueueSpec;
  /** What the names of everything in the stack start with. */
  readonly prefix: string;
}

/** A queue and its dead-letter queue, which takes from no other. */
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
      ...commonProps(queueName, spec.fifo),
      retentionPeriod: Duration.seconds(RETENTION_SECONDS),
      visibilityTimeout: Duration.seconds(visibilitySeconds(spec)),
      deadLetterQueue: { queue: this.deadLetters.queue, maxReceiveCount: spec.maxReceiveCount },
    });
  }

  /** Lets a function take the queue's messages (the event source adds that right) and set unreadable ones aside. */
  bindSource(grantee: Grantee): void {
    grantee.setEnvironment({ SOURCE_QUEUE_URL: this.queue.queueUrl } satisfies ValuesOf<
      typeof sourceVariables
    >);
    this.deadLetters.bindSend(grantee);
  }

  /** Lets a process of its own take the queue's messages, and set unreadable ones aside. */
  bindTake(grantee: Grantee): void {
    Grant.addToPrincipal({
      grantee,
      actions: ['sqs:ReceiveMessage', 'sqs:DeleteMessage', 'sqs:ChangeMessageVisibility'],
      resourceArns: [this.queue.queueArn],
    });
    this.deadLetters.bindSend(grantee);
  }

  grantSend(grantee: Grantee): void {
    grantSend(this.queue, grantee);
  }

  /** Lets somebody at a terminal see how many messages it and its dead letters hold. */
  bindCount(grantee: Grantee): void {
    grantCount([this.queue, this.deadLetters.queue], grantee);
  }

  /** Lets somebody at a terminal read its dead letters, and send them again. */
  bindRedrive(grantee: Grantee): void {
    this.deadLetters.bindRead(grantee);
    Grant.addToPrincipal({
      grantee,
      actions: ['sqs:StartMessageMoveTask', 'sqs:DeleteMessage'],
      resourceArns: [this.deadLetters.queue.queueArn],
    });
    grantSend(this.queue, grantee);
  }
}

export interface DeadLetterQueueProps {
  readonly name: string;
  readonly prefix: string;
  readonly fifo: boolean;
  /**
   * The full name of the queue that gives up messages to this one (by name: that queue refers to this one); absent:
   * functions alone send here.
   */
  readonly source?: string;
}

/** A queue for what nobody could read or do. */
export class DeadLetterQueue extends Construct {
  readonly name: string;
  readonly queue: Queue;

  constructor(scope: Construct, id: string, { name, prefix, fifo, source }: DeadLetterQueueProps) {
    super(scope, id);
    this.name = name;
    const sourceArn = source && Stack.of(this).formatArn({ service: 'sqs', resource: source });
    this.queue = new Queue(this, 'Queue', {
      ...commonProps(`${prefix}-${name}`, fifo),
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

  /** Lets somebody at a terminal see how many messages it holds. */
  bindCount(grantee: Grantee): void {
    grantCount([this.queue], grantee);
  }

  /** Lets somebody at a terminal read its messages, and have others see them again. */
  bindRead(grantee: Grantee): void {
    Grant.addToPrincipal({
      grantee,
      actions: ['sqs:ReceiveMessage', 'sqs:ChangeMessageVisibility'],
      resourceArns: [this.queue.queueArn],
    });
  }

  /** Lets somebody at a terminal delete what was read. */
  bindPurge(grantee: Grantee): void {
    Grant.addToPrincipal({
      grantee,
      actions: ['sqs:DeleteMessage'],
      resourceArns: [this.queue.queueArn],
    });
  }

  bindSend(grantee: Grantee): void {
    grantee.setEnvironment({
      DEAD_LETTER_QUEUE_URL: this.queue.queueUrl,
    } satisfies ValuesOf<typeof deadLetterVariables>);
    grantSend(this.queue, grantee);
  }
}

function grantCount(queues: readonly Queue[], grantee: Grantee): void {
  Grant.addToPrincipal({
    grantee,
    actions: ['sqs:GetQueueUrl', 'sqs:GetQueueAttributes'],
    resourceArns: queues.map(({ queueArn }) => queueArn),
  });
}

function commonProps(queueName: string, fifo: boolean): QueueProps {
  return {
    queueName,
    maxMessageSizeBytes: MAX_MESSAGE_BYTES,
    encryption: QueueEncryption.SQS_MANAGED,
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

function grantSend(queue: Queue, grantee: Grantee): void {
  Grant.addToPrincipal({ grantee, actions: ['sqs:SendMessage'], resourceArns: [queue.queueArn] });
}
