import type { DatabaseSync } from 'node:sqlite';
import * as z from 'zod';
import { clusterName, type NodeRef, nodeKey, nodeName } from '#shared/eviction/identity.ts';
import type { KubernetesObject } from '#shared/kubernetes/objects.ts';
import { leaseRequestSchema } from '#shared/state/lease.ts';
import { rulesName } from '#shared/state/objects/eviction-rules.ts';
import { plainNodeEviction, STATE_GROUP } from '#shared/state/objects/node-eviction.ts';
import { leaseObject } from '#shared/state/objects/object-leases.ts';
import { figuresOf } from '#shared/state/objects/object-store.ts';
import { pack } from '#shared/state/objects/packed.ts';
import { StoreError } from '#shared/state/store.ts';
import { parseStored } from '#shared/state/stored.ts';
import { KINDS } from './sqlite-objects.ts';
import { readNodeText } from './sqlite-store.ts';

/** The tables that become objects. Logs stay unchanged. */
const OLDER_TABLES = ['nodes', 'scheduled', 'leases', 'orders', 'guards', 'fleet', 'applied_files'];
/** The last time that a date can represent. */
const LATEST = 8.64e15;

const whole = z.int().nullable();
const text = z.string().nullable();
const cluster = z.string().transform(clusterName);
const nodeRow = z.object({
  cluster,
  node: z.string().transform(nodeName),
  revision: whole,
  state: text,
  ttl: whole,
});
const recordRow = z.object({ json: z.string(), fire_at: whole });
const leaseRow = z.object({
  ...{ cluster, holder: text, epoch: z.int(), renewals: z.int(), renewed_at: z.int(), heard_at: whole },
  ...{ nodes: whole, version: text, breaker_open: whole, bid: text, stuck: text },
});
const rulesRow = z.object({
  ...{ cluster, orders: text, ordersRevision: whole, trips: text, guardRevision: whole, file: text },
});
const fleetRow = z.object({ revision: z.int(), stop: text });

/**
 * Migrates the tables of older releases to objects, and drops them, in the caller's transaction. A process that is
 * killed meanwhile loses nothing. Unreadable data is copied unchanged, so that its readers fail as before.
 */
export function bringOver(database: DatabaseSync): void {
  // Not every release created this table.
  database.exec('CREATE TABLE IF NOT EXISTS applied_files (cluster TEXT PRIMARY KEY, json TEXT)');
  const insert = database.prepare(
    'INSERT INTO objects (kind, name, version, summary, json) VALUES (?, ?, 1, ?, ?)',
  );
  for (const { name, json, summary } of olderNodes(database))
    insert.run(KINDS.node, name, JSON.stringify(summary), json);
  for (const { kind, metadata, ...rest } of [...olderLeases(database), ...olderRules(database)])
    insert.run(kind, metadata.name, null, JSON.stringify({ ...rest, kind, metadata }));
  for (const table of OLDER_TABLES) database.exec(`DROP TABLE ${table}`);
}

/** Yields the nodes one by one, because there can be many. */
function* olderNodes(database: DatabaseSync) {
  const records = database.prepare(
    'SELECT json, fire_at FROM scheduled WHERE cluster = :cluster AND node = :node ORDER BY uid',
  );
  const nodes = database.prepare(`
    SELECT cluster, node, revision, state, ttl FROM nodes
    UNION ALL
    SELECT DISTINCT cluster, node, NULL, NULL, NULL FROM scheduled
    WHERE NOT EXISTS (SELECT 1 FROM nodes WHERE (cluster, node) = (scheduled.cluster, scheduled.node))`);
  for (const row of nodes.iterate()) {
    const { revision, state, ttl, ...ref } = parseStored(nodeRow, row, 'row of a node');
    const scheduled = records
      .all(ref)
      .map((each) => parseStored(recordRow, each, `eviction record of node ${ref.node}`));
    const kept = [
      ...(state === null ? [] : [`"node":${state}`]),
      `"scheduled":[${scheduled.map(({ json }) => json).join()}]`,
      ...['"ended":[]', ...(ttl === null ? [] : [`"ttl":${ttl}`])],
    ];
    const status = JSON.stringify({ ...ref, revision: revision ?? 1 }).slice(0, -1);
    const json = `{"metadata":{"name":${JSON.stringify(nodeKey(ref))}},"status":${status},"records":{${kept.join()}}}}`;
    const due = [...new Set(scheduled.flatMap(({ fire_at }) => fire_at ?? []))];
    yield { name: nodeKey(ref), ...nodeObject(ref, json, due) };
  }
}

/**
 * Returns a node's object in the present form, if it is readable. Otherwise returns it unchanged, with the same
 * deadlines.
 */
function nodeObject(ref: NodeRef, json: string, due: readonly number[]) {
  try {
    const { resourceVersion: _none, ...kept } = readNodeText(ref, json, '0');
    return { json: JSON.stringify(plainNodeEviction(kept)), summary: { ...figuresOf(kept), ttl: kept.ttl } };
  } catch (error) {
    if (!(error instanceof StoreError)) throw error;
    return { json, summary: { ref, due, standings: {} } };
  }
}

function olderLeases(database: DatabaseSync): readonly KubernetesObject[] {
  const rows = database.prepare('SELECT * FROM leases').all();
  return rows.map((row) => {
    const lease = parseStored(leaseRow, row, 'lease');
    const { holder, heard_at: heardAt, nodes, version, breaker_open: breakerOpen } = lease;
    // A relay that wants the lease requests it again.
    const bid = leaseRequestSchema.safeParse(jsonIn(lease.bid)).data;
    const stuck = jsonIn(lease.stuck);
    return leaseObject(lease.cluster, {
      transitions: 0,
      record: {
        ...{ cluster: lease.cluster, epoch: lease.epoch, renewals: lease.renewals },
        renewedAt: Math.min(Math.max(lease.renewed_at, 0), LATEST),
        ...(holder === null ? {} : { holder }),
        ...(heardAt === null ? {} : { heardAt }),
        ...(nodes === null ? {} : { nodes }),
        ...(version === null ? {} : { version }),
        ...(breakerOpen === null ? {} : { breakerOpen: breakerOpen === 1 }),
        ...(bid === undefined ? {} : { bid }),
      },
      ...(Array.isArray(stuck) ? { stuck: pack(stuck) } : {}),
    });
  });
}

function olderRules(database: DatabaseSync): readonly KubernetesObject[] {
  const rows = database.prepare(`
    SELECT cluster, orders.json AS orders, orders.revision AS ordersRevision,
      trips, guards.revision AS guardRevision, applied_files.json AS file
    FROM (SELECT cluster FROM orders UNION SELECT cluster FROM guards UNION SELECT cluster FROM applied_files)
      LEFT JOIN orders USING (cluster) LEFT JOIN guards USING (cluster) LEFT JOIN applied_files USING (cluster)`);
  const ofClusters = rows.all().map((row) => {
    const { file, ...rules } = parseStored(rulesRow, row, 'rules');
    return rulesObject(rulesName(rules.cluster), {
      cluster: rules.cluster,
      orders: { revision: rules.ordersRevision ?? 0, ...fieldsIn(rules.orders ?? '{"holds":[]}') },
      guard: { revision: rules.guardRevision ?? 0, trips: jsonIn(rules.trips ?? '[]') },
      fleet: { revision: 0 },
      ...(file === null ? {} : { appliedFile: fieldsIn(file) }),
    });
  });
  const ofAll = database
    .prepare('SELECT revision, stop FROM fleet')
    .all()
    .map((row) => {
      const { revision, stop } = parseStored(fleetRow, row, 'stop of all clusters');
      return rulesObject(rulesName(undefined), {
        orders: { revision: 0, holds: [] },
        guard: { revision: 0, trips: [] },
        fleet: { revision, ...(stop === null ? {} : { stop: fieldsIn(stop) }) },
      });
    });
  return [...ofClusters, ...ofAll];
}

const rulesObject = (name: string, status: object): KubernetesObject & { readonly status: object } => ({
  ...{ apiVersion: STATE_GROUP, kind: KINDS.rules, metadata: { name } },
  status,
});

/** Returns the parsed JSON, or the text itself, which its readers reject. */
function jsonIn(json: string | null): unknown {
  try {
    return JSON.parse(json ?? 'null');
  } catch {
    return json;
  }
}

/** Returns the fields of a JSON object without validation, which is left to their readers. */
function fieldsIn(json: string): object {
  const value = jsonIn(json);
  return typeof value === 'object' && value !== null ? value : { unreadable: json };
}
