import { randomUUID } from 'node:crypto';
import {
  CreateTableCommand,
  DeleteTableCommand,
  DynamoDBClient,
  waitUntilTableExists,
} from '@aws-sdk/client-dynamodb';
import { DynamoDbTable } from '#shared/state/dynamodb/dynamodb-table.ts';
import { startDynamoDbLocal } from './dynamodb-local.ts';
import { type AwsEndpoint, awsClientConfig, awsEndpoint } from './endpoint.ts';
import { tableDefinition } from './table-definition.ts';

/** The time in seconds that a new table may take to become active. Real ones take about ten. */
const TABLE_TIMEOUT_SECONDS = 60;

/** A table for one test. */
export interface TestTable {
  readonly client: DynamoDBClient;
  readonly tableName: string;
  /** The same table through the service's adapter. */
  readonly table: DynamoDbTable;
  /** Deletes the table, and ends the processes that were started for it. */
  close(): Promise<void>;
}

/** Creates a table with the service's definition, under a unique name. */
export async function createTestTable(): Promise<TestTable> {
  const endpoint = await dynamoDbEndpoint();
  const client = new DynamoDBClient(awsClientConfig(endpoint.url));
  const tableName = `test-${randomUUID()}`;
  await client.send(new CreateTableCommand(tableDefinition(tableName)));
  await waitUntilTableExists(
    { client, maxWaitTime: TABLE_TIMEOUT_SECONDS, minDelay: 1, maxDelay: 1 },
    { TableName: tableName },
  );
  const close = async () => {
    await client.send(new DeleteTableCommand({ TableName: tableName }));
    client.destroy();
    await endpoint.close();
  };
  return { client, tableName, table: new DynamoDbTable({ client, tableName }), close };
}

/**
 * Returns the stand-in for DynamoDB: the endpoint in `DYNAMODB_ENDPOINT_URL`, or DynamoDB Local from the directory
 * `DYNAMODB_LOCAL_JARS`, or else the stand-in for all of AWS.
 */
async function dynamoDbEndpoint(): Promise<AwsEndpoint> {
  const url = process.env['DYNAMODB_ENDPOINT_URL'];
  if (url) return { url, close: async () => {} };
  const jars = process.env['DYNAMODB_LOCAL_JARS'];
  return jars ? startDynamoDbLocal(jars) : awsEndpoint();
}
