import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { CLIENT_SETTINGS } from '#shared/access/client-settings.ts';
import { stdoutEmf } from '#shared/aws/emf.ts';
import { heartbeatEnvironment, readEnvironment } from '#shared/aws/environment.ts';
import { DynamoDbLeases } from '#shared/state/dynamodb/dynamodb-leases.ts';
import { DynamoDbClusterRegistry } from '#shared/state/dynamodb/dynamodb-registry.ts';
import { DynamoDbTable } from '#shared/state/dynamodb/dynamodb-table.ts';
import { jsonLog } from '#shared/telemetry/log.ts';
import { LambdaClock } from '#shared/time/lambda-clock.ts';
import { createHandler } from './handler.ts';

const environment = readEnvironment(heartbeatEnvironment, process.env);
const table = new DynamoDbTable({
  client: new DynamoDBClient(CLIENT_SETTINGS),
  tableName: environment.TABLE_NAME,
});

const clock = new LambdaClock();

/** The entry of the Lambda function that a rule invokes every minute. */
export const handler = createHandler({
  registry: new DynamoDbClusterRegistry(table),
  leases: new DynamoDbLeases(table),
  emf: stdoutEmf(environment.METRIC_NAMESPACE),
  stopwatch: () => clock.stopwatch(),
  invoked: () => clock.invoked(),
  log: jsonLog(),
});
