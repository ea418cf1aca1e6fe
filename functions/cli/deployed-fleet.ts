import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { GetCallerIdentityCommand, STSClient } from '@aws-sdk/client-sts';
import { CLIENT_SETTINGS } from '#shared/aws/client-settings.ts';
import { DynamoDbClusterRegistry } from '#shared/clusters/dynamodb-registry.ts';
import { DynamoDbRulebook } from '#shared/clusters/dynamodb-rulebook.ts';
import { Operator } from '#shared/clusters/operator.ts';
import { DynamoDbStore } from '#shared/store/dynamodb-store.ts';
import { DynamoDbTable } from '#shared/store/dynamodb-table.ts';
import type { Clock } from '#shared/time/clock.ts';
import { CliError } from './command.ts';
import type { Fleet } from './fleet.ts';

/** The fleet of a deployment. Who speaks is who AWS says it is. */
export function deployedFleet(tableName: string, clock: Clock): Fleet {
  const table = new DynamoDbTable({ client: new DynamoDBClient(CLIENT_SETTINGS), tableName });
  const registry = new DynamoDbClusterRegistry(table);
  const rulebook = new DynamoDbRulebook(table);
  return {
    rulebook,
    store: new DynamoDbStore(table),
    clusters: async () => (await registry.list()).map(({ name }) => name),
    operator: async () => new Operator({ rulebook, clock, who: await callerIdentity() }),
  };
}

async function callerIdentity(): Promise<string> {
  try {
    const { Arn } = await new STSClient(CLIENT_SETTINGS).send(new GetCallerIdentityCommand());
    if (Arn) return Arn;
    throw new Error('it names nobody');
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new CliError(
      `AWS does not say who you are, which the audit has to know (${reason}): check credentials and network.`,
    );
  }
}
