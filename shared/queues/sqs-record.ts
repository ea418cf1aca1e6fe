import type { Message, MessageAttributeValue } from '@aws-sdk/client-sqs';
import type { SQSMessageAttribute, SQSRecord } from 'aws-lambda';

/**
 * A received message as Lambda would put it into an event. A projection by hand, no schema: the SDK has parsed
 * the message, and the fields it calls optional are there whenever they were asked for.
 */
export function toSqsRecord(message: Message, queueArn: string): SQSRecord {
  const { Attributes = {}, MessageAttributes = {}, MD5OfMessageAttributes } = message;
  const attributes = Object.entries(MessageAttributes).map(([name, value]) => [name, toAttribute(value)]);
  return {
    messageId: message.MessageId ?? '',
    receiptHandle: message.ReceiptHandle ?? '',
    body: message.Body ?? '',
    attributes: {
      ...Attributes,
      ApproximateReceiveCount: Attributes.ApproximateReceiveCount ?? '1',
      SentTimestamp: Attributes.SentTimestamp ?? '',
      SenderId: Attributes.SenderId ?? '',
      ApproximateFirstReceiveTimestamp: Attributes.ApproximateFirstReceiveTimestamp ?? '',
    },
    messageAttributes: Object.fromEntries(attributes),
    md5OfBody: message.MD5OfBody ?? '',
    ...(MD5OfMessageAttributes === undefined ? {} : { md5OfMessageAttributes: MD5OfMessageAttributes }),
    eventSource: 'aws:sqs',
    eventSourceARN: queueArn,
    awsRegion: queueArn.split(':')[3] ?? '',
  };
}

function toAttribute({
  DataType = '',
  StringValue,
  BinaryValue,
}: MessageAttributeValue): SQSMessageAttribute {
  return {
    ...(StringValue === undefined ? {} : { stringValue: StringValue }),
    ...(BinaryValue === undefined ? {} : { binaryValue: Buffer.from(BinaryValue).toString('base64') }),
    stringListValues: [],
    binaryListValues: [],
    dataType: DataType,
  };
}
