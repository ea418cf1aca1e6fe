import { DynamoDbRulesStore } from '#shared/state/dynamodb/dynamodb-rules-store.ts';
import { createTestTable } from '#test/aws/dynamodb-table.ts';
import { rulesStoreContract } from '../rules-store-contract.ts';

rulesStoreContract('DynamoDbRulesStore', async () => {
  const { table, close } = await createTestTable();
  return { rulesStore: new DynamoDbRulesStore(table), close };
});
