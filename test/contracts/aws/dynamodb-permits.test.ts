import { dynamoDbPermits } from '#shared/state/dynamodb/dynamodb-permits.ts';
import { createTestTable } from '#test/aws/dynamodb-table.ts';
import { permitsContract } from '../permits-contract.ts';

permitsContract(
  'dynamoDbPermits',
  async () => {
    const { table, close } = await createTestTable();
    return { open: () => dynamoDbPermits(table), close };
  },
  { shared: true },
);
