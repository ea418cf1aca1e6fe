import { DynamoDbRulebook } from '#shared/state/dynamodb/dynamodb-rulebook.ts';
import { createTestTable } from '#test/aws/dynamodb-table.ts';
import { rulebookContract } from '../rulebook-contract.ts';

rulebookContract('DynamoDbRulebook', async () => {
  const { table, close } = await createTestTable();
  return { rulebook: new DynamoDbRulebook(table), close };
});
