import { join } from 'node:path';
import type { AwsEndpoint } from './endpoint.ts';
import { freePort, startServer } from './server-process.ts';

/**
 * Starts DynamoDB Local, AWS's own stand-in, in memory. `jars`: a directory with it and all its dependencies (Maven's
 * `com.amazonaws:DynamoDBLocal`). Requires `java`, 17 or newer, on the PATH.
 */
export async function startDynamoDbLocal(jars: string): Promise<AwsEndpoint> {
  const port = await freePort();
  const url = `http://localhost:${port}`;
  const { close } = await startServer({
    command: 'java',
    args: [
      '-cp',
      join(jars, '*'),
      'com.amazonaws.services.dynamodbv2.local.main.ServerRunner',
      ...['-inMemory', '-sharedDb', '-disableTelemetry', '-port', `${port}`],
    ],
    env: {},
    url,
    whenMissing: 'DynamoDB Local needs Java: install a Java 17 runtime, or unset DYNAMODB_LOCAL_JARS.',
  });
  return { url, close };
}
