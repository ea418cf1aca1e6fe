import { DynamoDbHistory } from '#shared/state/dynamodb/dynamodb-history.ts';
import { DynamoDbStore } from '#shared/state/dynamodb/dynamodb-store.ts';
import { createTestTable } from '#test/aws/dynamodb-table.ts';
import { historyContract } from '../history-contract.ts';

historyContract('DynamoDbHistory', async () => {
  const { table, close } = await createTestTable();
  const history = new DynamoDbHistory(table);
  return { store: new DynamoDbStore(table), history, notes: history, close };
});
