import { DynamoDbRulesStore } from '#shared/state/dynamodb/dynamodb-rules-store.ts';
import { createTestTable } from '#test/aws/dynamodb-table.ts';
import { rulebookContract } from '../rules-store-contract.ts';

rulebookContract('DynamoDbRulesStore', async () => {
  const { table, close } = await createTestTable();
  return { rulesStore: new DynamoDbRulesStore(table), close };
});
