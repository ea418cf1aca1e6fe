import { openDatabase } from '#functions/local/sqlite-database.ts';
import { SqliteLeases } from '#functions/local/sqlite-leases.ts';
import { leaseContract } from '#test/contracts/lease-contract.ts';

leaseContract('SqliteLeases', async () => {
  const database = openDatabase(':memory:');
  return { leases: new SqliteLeases({ database }), close: async () => database.close() };
});
