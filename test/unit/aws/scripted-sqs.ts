import { type SendMessageBatchRequest, type SendMessageBatchResult, SQSClient } from '@aws-sdk/client-sqs';

export interface ScriptedSqs {
  readonly client: SQSClient;
  /** The sent batches, as the bodies of their messages. */
  readonly calls: (readonly string[])[];
  /** The requests of the same calls. */
  readonly requests: object[];
}

/** Returns a client without a network whose calls all return the result of `answer`, or fail with its error. */
export function scriptedSqs(
  answer: (bodies: readonly string[]) => Partial<SendMessageBatchResult>,
): ScriptedSqs {
  const calls: (readonly string[])[] = [];
  const requests: object[] = [];
  const client = new SQSClient({ region: 'us-east-1' });
  client.middlewareStack.add(
    () => async (args) => {
      const { Entries = [] } = args.input as SendMessageBatchRequest;
      const bodies = Entries.map(({ MessageBody = '' }) => MessageBody);
      calls.push(bodies);
      requests.push(args.input);
      return { response: {}, output: { $metadata: {}, ...answer(bodies) } };
    },
    { step: 'initialize', priority: 'high' },
  );
  return { client, calls, requests };
}
