import { DynamoDbPermits } from '#shared/state/dynamodb/dynamodb-permits.ts';
import { createTestTable } from '#test/aws/dynamodb-table.ts';
import { permitsContract } from '../permits-contract.ts';

permitsContract(
  'DynamoDbPermits',
  async () => {
    const { table, close } = await createTestTable();
    return { open: () => new DynamoDbPermits(table), close };
  },
  { shared: true },
);
