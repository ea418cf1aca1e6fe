import type { SQSEvent, SQSRecord } from 'aws-lambda';

/** Returns one message in the format of Lambda's events. */
export function sqsRecord(
  body: string,
  fields: { messageId?: string; groupId?: string; receives?: number; senderId?: string } = {},
): SQSRecord {
  const { messageId = 'm1', groupId, receives = 1, senderId = 'test' } = fields;
  return {
    messageId,
    receiptHandle: messageId,
    body,
    attributes: {
      ApproximateReceiveCount: String(receives),
      SentTimestamp: '0',
      SenderId: senderId,
      ApproximateFirstReceiveTimestamp: '0',
      ...(groupId === undefined ? {} : { MessageGroupId: groupId }),
    },
    messageAttributes: {},
    md5OfBody: '',
    eventSource: 'aws:sqs',
    eventSourceARN: 'arn:aws:sqs:us-east-1:000000000000:test',
    awsRegion: 'us-east-1',
  };
}

export const sqsEvent = (...records: readonly SQSRecord[]): SQSEvent => ({ Records: [...records] });
