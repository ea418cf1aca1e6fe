import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import { json } from 'node:stream/consumers';
import { DynamoDBClient } from '@aws-sdk/client-dynamodb';

/** An answer: a result, or an error of this name. */
export type Answer = { readonly result: unknown } | { readonly error: string; readonly fields?: object };

export interface Request {
  /** For example `GetItem`. */
  readonly operation: string;
  readonly input: unknown;
}

/** A DynamoDB that gives these answers in order, the last one indefinitely, and records its requests. */
export async function scriptedDynamoDb(answers: readonly Answer[]) {
  const requests: Request[] = [];
  const server = createServer(async (request, response) => {
    requests.push({ operation: operationOf(request), input: await json(request) });
    const answer = answers[Math.min(requests.length, answers.length) - 1] ?? { result: {} };
    response.setHeader('content-type', 'application/x-amz-json-1.0');
    if ('result' in answer) {
      response.end(JSON.stringify(answer.result));
    } else {
      const type = `com.amazonaws.dynamodb.v20120810#${answer.error}`;
      response.writeHead(400).end(JSON.stringify({ __type: type, message: 'no', ...answer.fields }));
    }
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;
  const client = new DynamoDBClient({
    endpoint: `http://127.0.0.1:${port}`,
    region: 'us-east-1',
    credentials: { accessKeyId: 'test', secretAccessKey: 'test' },
    maxAttempts: 1,
  });
  const close = async () => {
    client.destroy();
    server.close();
    server.closeAllConnections();
    await once(server, 'close');
  };
  return { client, requests, close };
}

function operationOf(request: IncomingMessage): string {
  return `${request.headers['x-amz-target']}`.replace('DynamoDB_20120810.', '');
}
