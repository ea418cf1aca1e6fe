import { DynamoDbStore } from '#shared/state/dynamodb/dynamodb-store.ts';
import { createTestTable } from '#test/aws/dynamodb-table.ts';
import { storeContract } from '../store-contract.ts';

storeContract('DynamoDbStore', async () => {
  const { table, close } = await createTestTable();
  return { store: new DynamoDbStore(table), close };
});
