import { join } from 'node:path';
import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { openDatabaseReadOnly } from '#functions/local/sqlite-database.ts';
import { SqliteHistory } from '#functions/local/sqlite-history.ts';
import { STORE_FILE } from '#functions/local/state-directory.ts';
import { CLIENT_SETTINGS } from '#shared/aws/client-settings.ts';
import { DynamoDbClusterRegistry } from '#shared/clusters/dynamodb-registry.ts';
import { DynamoDbHistory } from '#shared/store/dynamodb-history.ts';
import { DynamoDbTable } from '#shared/store/dynamodb-table.ts';
import type { CliDeps, OpenHistory } from './command.ts';

/** Opens the history in a table, or in a state directory, whose service may run. Throws `StoreError`. */
export const storedHistory: CliDeps['history'] = (where) =>
  'state' in where ? inDirectory(where.state) : inTable(where.table);

function inTable(tableName: string): OpenHistory {
  const table = new DynamoDbTable({ client: new DynamoDBClient(CLIENT_SETTINGS), tableName });
  const history = new DynamoDbHistory(table);
  return {
    entries: (query) => history.entries(query),
    clusters: async () => (await new DynamoDbClusterRegistry(table).list()).map(({ name }) => name),
    close: () => undefined,
  };
}

function inDirectory(state: string): OpenHistory {
  const database = openDatabaseReadOnly(join(state, STORE_FILE));
  const history = new SqliteHistory({ database });
  return {
    entries: (query) => history.entries(query),
    clusters: async () => history.clusters(),
    close: () => database.close(),
  };
}
