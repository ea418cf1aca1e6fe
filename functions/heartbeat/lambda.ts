import { deployedTable } from '#shared/aws/deployed-table.ts';
import { stdoutEmf } from '#shared/aws/emf.ts';
import { heartbeatEnvironment, readEnvironment } from '#shared/aws/environment.ts';
import { DynamoDbLeases } from '#shared/state/dynamodb/dynamodb-leases.ts';
import { DynamoDbClusterRegistry } from '#shared/state/dynamodb/dynamodb-registry.ts';
import { jsonLog } from '#shared/telemetry/log.ts';
import { LambdaClock } from '#shared/time/lambda-clock.ts';
import { createHandler } from './handler.ts';

const environment = readEnvironment(heartbeatEnvironment, process.env);
const table = deployedTable(environment);

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
