import { DynamoDbRateLimiter } from '#shared/state/dynamodb/dynamodb-permits.ts';
import { createTestTable } from '#test/aws/dynamodb-table.ts';
import { rateLimiterContract } from '../rate-limiter-contract.ts';

rateLimiterContract(
  'DynamoDbRateLimiter',
  async () => {
    const { table, close } = await createTestTable();
    return { open: () => new DynamoDbRateLimiter(table), close };
  },
  { shared: true },
);
