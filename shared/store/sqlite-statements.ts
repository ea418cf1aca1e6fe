import type { DatabaseSync } from 'node:sqlite';

/** Every statement of the embedded store, prepared once. */
export function prepareStatements(database: DatabaseSync) {
  return {
    node: database.prepare('SELECT revision, state FROM nodes WHERE cluster = :cluster AND node = :node'),
    allRecords: database.prepare('SELECT record FROM evictions WHERE cluster = :cluster AND node = :node'),
    recordsOf: database.prepare(`
      SELECT record FROM evictions
      WHERE cluster = :cluster AND node = :node AND uid IN (SELECT value FROM json_each(:uids))`),
    dueRecords: database.prepare(`
      SELECT record FROM evictions
      WHERE cluster = :cluster AND node = :node AND state = 'scheduled' AND fire_at <= :now`),
    tombstoneOf: database.prepare(`
      SELECT uid FROM evictions
      WHERE cluster = :cluster AND node = :node AND uid IN (SELECT value FROM json_each(:uids))
        AND state IN ('done', 'gone')`),
    writeRevision: database.prepare(`
      INSERT INTO nodes (cluster, node, revision, ttl) VALUES (:cluster, :node, :revision, :ttl)
      ON CONFLICT DO UPDATE SET revision = excluded.revision, ttl = excluded.ttl`),
    writeState: database.prepare('UPDATE nodes SET state = :state WHERE cluster = :cluster AND node = :node'),
    writeRecord: database.prepare(`
      INSERT INTO evictions (cluster, node, uid, record, ttl) VALUES (:cluster, :node, :uid, :record, :ttl)
      ON CONFLICT DO UPDATE SET record = excluded.record, ttl = excluded.ttl`),
    settle: database.prepare(`
      UPDATE evictions SET record = json_set(record, '$.state', :state), ttl = :ttl
      WHERE cluster = :cluster AND node = :node AND uid = :uid AND state = 'scheduled'`),
    taintedNodes: database.prepare(`
      SELECT node, state FROM nodes
      WHERE cluster = :cluster AND json_array_length(state, '$.taints') > 0 ORDER BY node`),
    upcoming: database.prepare(`
      SELECT DISTINCT fire_at AS fireAt, cluster, node FROM evictions
      WHERE state = 'scheduled' AND (fire_at, cluster, node) > (:fireAt, :cluster, :node)
      ORDER BY fire_at, cluster, node LIMIT :limit`),
    purgeRecords: database.prepare('DELETE FROM evictions WHERE ttl <= :nowSeconds'),
    purgeNodes: database.prepare('DELETE FROM nodes WHERE ttl <= :nowSeconds'),
  };
}
