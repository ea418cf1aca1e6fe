import { DynamoDbHistory } from '#shared/store/dynamodb-history.ts';
import { DynamoDbStore } from '#shared/store/dynamodb-store.ts';
import { createTestTable } from '#test/aws/dynamodb-table.ts';
import { historyContract } from '../history-contract.ts';

historyContract('DynamoDbHistory', async () => {
  const { table, close } = await createTestTable();
  const history = new DynamoDbHistory(table);
  return { store: new DynamoDbStore(table), history, notes: history, close };
});
