import { SqliteLeases } from '#shared/clusters/sqlite-leases.ts';
import { openDatabase } from '#shared/store/open-database.ts';
import { leaseContract } from '#test/contracts/lease-contract.ts';

leaseContract('SqliteLeases', async () => {
  const database = openDatabase(':memory:');
  return { leases: new SqliteLeases({ database }), close: async () => database.close() };
});
