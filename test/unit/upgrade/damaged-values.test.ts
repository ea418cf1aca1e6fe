import { join } from 'node:path';
import { test } from 'node:test';
import { isDeepStrictEqual } from 'node:util';
import { parseDelta } from '#shared/aws/delta-message.ts';
import { parseDueMessage } from '#shared/aws/due-message.ts';
import type { Objects } from '#shared/kubernetes/objects.ts';
import type { Item } from '#shared/state/dynamodb/dynamodb-item.ts';
import { DynamoDbLeases } from '#shared/state/dynamodb/dynamodb-leases.ts';
import { dynamoDbPermits } from '#shared/state/dynamodb/dynamodb-permits.ts';
import { dynamoDbProofs } from '#shared/state/dynamodb/dynamodb-proofs.ts';
import { DynamoDbClusterRegistry } from '#shared/state/dynamodb/dynamodb-registry.ts';
import { DynamoDbRulesStore } from '#shared/state/dynamodb/dynamodb-rules-store.ts';
import type { DynamoDbTable } from '#shared/state/dynamodb/dynamodb-table.ts';
import { parseChangedItem, parseEndedItem, parseGoneItem } from '#shared/state/dynamodb/history-items.ts';
import { parseNodeItem, parseScheduledItem, scheduledItem } from '#shared/state/dynamodb/items.ts';
import { auditOf, readEvictionRules } from '#shared/state/objects/eviction-rules.ts';
import { gonePods } from '#shared/state/objects/kubernetes-history.ts';
import { historyOf, readNodeEviction } from '#shared/state/objects/node-eviction.ts';
import { ObjectLeases } from '#shared/state/objects/object-leases.ts';
import { objectPermits } from '#shared/state/objects/object-permits.ts';
import { StoreError } from '#shared/state/store.ts';
import { aRecord } from '#test/contracts/partition-builders.ts';
import { waitingPods } from '#test/contracts/permits-contract.ts';
import { GATES } from '#test/contracts/store-contract.ts';
import { closed } from './kept-objects.ts';
import { CLUSTER, NOW, REF } from './messages.ts';
import { RELEASES } from './releases.ts';

/*
 * A value that no release writes is refused: nothing is decided by it. The record lists the exceptions, each with the
 * values that are read, and those that change what is read of others.
 */

/** What an item's table answers: the item, however it is requested. */
const tableWith = (item: Item): DynamoDbTable => {
  const items = async function* () {
    yield item;
  };
  const one = async () => item;
  return { get: one, update: one, batchGet: items, query: items, indexed: items } as never;
};

/** Returns an object in its stored form, as an API server returns it. */
const stored = (object: Item): unknown => {
  const { metadata, ...rest } = closed(object) as { readonly metadata: object };
  const isObject = typeof metadata === 'object' && metadata !== null;
  return { ...rest, metadata: isObject ? { ...metadata, resourceVersion: '1' } : metadata };
};

/** Answers each request with the object. Writes succeed. */
const objectsWith = (object: Item): Objects => {
  const one = async () => stored(object);
  return { get: one, create: one, replace: one } as never;
};

const rates = { evictionRate: 1, releaseRate: 1 };
const limit = { workload: 'default/Deployment/web', count: 1, windowMs: 60_000 };
const all = { cluster: CLUSTER, from: 0, to: Number.POSITIVE_INFINITY };

/** Readers of items, by the start of their sort keys, of objects, by their kinds, and of messages. */
const READERS: Readonly<Record<string, (item: Item) => unknown>> = {
  NODE: (item) => parseNodeItem(REF, item),
  SCHEDULED: parseScheduledItem,
  ENDED: (item) => parseEndedItem(item),
  CHANGED: parseChangedItem,
  GONE: parseGoneItem,
  LEASE: (item) => new DynamoDbLeases(tableWith(item)).read(CLUSTER),
  STUCK: (item) => new DynamoDbLeases(tableWith(item)).stuck(CLUSTER),
  POLICY: (item) => new DynamoDbRulesStore(tableWith(item)).read(CLUSTER),
  GUARD: (item) => new DynamoDbRulesStore(tableWith(item)).read(CLUSTER),
  STOP: (item) => new DynamoDbRulesStore(tableWith(item)).read(CLUSTER),
  AUDIT: (item) => new DynamoDbRulesStore(tableWith(item)).audit(all),
  REGISTRATION: async (item) => {
    const access = (await new DynamoDbClusterRegistry(tableWith(item)).get(CLUSTER))?.access;
    if (access?.kind === 'unreadable') throw new StoreError(access.reason);
    return access;
  },
  PERMITS: (item) => dynamoDbPermits(tableWith(item)).take(CLUSTER, waitingPods(1), limit, NOW),
  RATE: (item) => dynamoDbPermits(tableWith(item)).take(CLUSTER, waitingPods(1), rates, NOW),
  PROOF: (item) => dynamoDbProofs(tableWith(item)).read(CLUSTER),
  PROBE: (item) => dynamoDbProofs(tableWith(item)).tracedAt(CLUSTER),
  NodeEviction(object) {
    const kept = readNodeEviction(stored(object));
    return { ...kept, history: historyOf(kept) };
  },
  EvictionRules(object) {
    const kept = readEvictionRules(stored(object));
    return { ...kept, audit: auditOf(kept) };
  },
  Lease: async (object) => {
    const leases = new ObjectLeases(objectsWith(object));
    return [await leases.read(CLUSTER), await leases.stuck(CLUSTER)];
  },
  'ConfigMap of gone pods': (object) => gonePods(objectsWith(object), CLUSTER).read(),
  'ConfigMap of permits': (object) =>
    objectPermits(objectsWith(object)).take(CLUSTER, waitingPods(1), limit, NOW),
  delta: (body) => parseDelta(JSON.stringify(body)),
  due: (body) => parseDueMessage(JSON.stringify(body)),
};

/** Values of which at most some are possible in any place. */
const DAMAGES = [-7_777, 7_777.5, '', 'nobody', false, null, {}, []];

/** Returns each copy of a value with another value in one place. */
function* damaged(
  value: unknown,
  path = '',
): Generator<readonly [place: string, damage: unknown, copy: unknown]> {
  if (path !== '') for (const damage of DAMAGES) if (damage !== value) yield [path, damage, damage];
  if (typeof value !== 'object' || value === null) return;
  for (const [name, inner] of Object.entries(value))
    for (const [place, damage, copy] of damaged(inner, `${path}/${name}`))
      yield [
        place,
        damage,
        Array.isArray(value) ? value.with(Number(name), copy) : { ...value, [name]: copy },
      ];
}

/** Attributes by which a table finds and removes items, and the parts of objects that items have, too. */
const OTHERS =
  /^\/(pk|sk|clusterKey|clusterSort|ttl)$|\/packed\/(\d+\/)?(node|scheduled|ended|noted)\/|\/(orders|guard|fleet)\/\w+\/|\/audit\/packed\/\d+\//;

const withoutBigints = (_: string, value: unknown) => (typeof value === 'bigint' ? `${value}` : value);

const nameOf = ({ kind, binaryData }: Item): string => {
  if (kind !== 'ConfigMap') return `${kind}`;
  return 'pods' in (binaryData as object) ? 'ConfigMap of gone pods' : 'ConfigMap of permits';
};

test('a value that no release stores or sends is refused, apart from those in this record', async (t) => {
  const { written } = RELEASES.find(({ release }) => release === 'unreleased') ?? t.assert.fail();
  const held = Object.values(GATES).map(
    (by) => [`SCHEDULED ${by.kind}`, scheduledItem(REF, aRecord({ held: { by, since: NOW } }), NOW)] as const,
  );
  const items = written.items.map((item) => [`${item['sk']}`.replace(/#.*/, ''), item] as const);
  const objects = Object.values(written.objects).flatMap((some) =>
    some.map((object) => [nameOf(object as Item), object as Item] as const),
  );
  const messages = (['delta', 'due'] as const).flatMap((name) =>
    Object.entries(written[name === 'delta' ? 'deltas' : name]).map(
      ([kind, body]) => [`${name} ${kind}`, body as Item] as const,
    ),
  );
  const places = new Map<string, { read: Set<string>; changed: Set<string> }>();
  for (const [name, item] of [...items, ...held, ...objects, ...messages]) {
    const read = READERS[name.replace(/^(SCHEDULED|delta|due) .*/, '$1')] ?? t.assert.fail(name);
    const before = await read(item);
    for (const [place, damage, copy] of damaged(item)) {
      if (OTHERS.test(place) || (/SCHEDULED /.test(name) && !place.startsWith('/held/by/'))) continue;
      let after: unknown;
      try {
        after = await read(copy as Item);
      } catch (error) {
        t.assert.match((error as Error).name, /^(StoreError|RejectedMessageError)$/, `${name}${place}`);
        continue;
      }
      if (isDeepStrictEqual(after, before)) continue;
      const line = `${name}${place.replace(/\/\d+/g, '/*')}`;
      const found = places.get(line) ?? { read: new Set(), changed: new Set() };
      places.set(line, found);
      const text = JSON.stringify(damage);
      const count = (given: unknown) => `${JSON.stringify(given, withoutBigints)}`.split(text).length;
      found[count(after) > count(before) ? 'read' : 'changed'].add(text);
    }
  }
  const lines = [...places].map(([place, { read, changed }]) =>
    [place, ...read, ...(changed.size > 0 ? ['changes by', ...changed] : [])].join(' '),
  );
  t.assert.fileSnapshot(lines, join(import.meta.dirname, 'damaged-values.txt'), {
    serializers: [(given: readonly string[]) => `${given.toSorted().join('\n')}\n`],
  });
});
