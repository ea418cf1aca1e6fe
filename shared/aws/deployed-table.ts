import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { CLIENT_SETTINGS } from '#shared/access/client-settings.ts';
import { DynamoDbTable } from '#shared/state/dynamodb/dynamodb-table.ts';

/** Returns the table that an environment names. */
export const deployedTable = ({ TABLE_NAME: tableName }: { readonly TABLE_NAME: string }): DynamoDbTable =>
  new DynamoDbTable({ client: new DynamoDBClient(CLIENT_SETTINGS), tableName });
