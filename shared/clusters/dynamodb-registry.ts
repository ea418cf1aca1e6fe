import * as z from 'zod';
import type { ClusterName } from '#shared/eviction/identity.ts';
import { firstFault } from '#shared/first-fault.ts';
import type { DynamoDbTable, Item, Key } from '#shared/store/dynamodb-table.ts';
import { parseStored } from '#shared/store/stored.ts';
import { CLUSTER_PREFIX } from './dynamodb-rulebook.ts';
import {
  type Access,
  type ClusterRegistry,
  clusterNameSchema,
  type RegisteredCluster,
  type UnreadableAccess,
} from './registry.ts';

/** What all registrations stand under in the index. */
const CLUSTERS_KEY = 'CLUSTERS';

const registrationKey = (name: ClusterName): Key => ({ pk: `${CLUSTER_PREFIX}${name}`, sk: 'REGISTRATION' });

/** The registry as `REGISTRATION` items of the store's table, listed by its index. */
export class DynamoDbClusterRegistry implements ClusterRegistry {
  readonly #table: DynamoDbTable;

  constructor(table: DynamoDbTable) {
    this.#table = table;
  }

  async list(): Promise<readonly RegisteredCluster[]> {
    const items = await Array.fromAsync(this.#table.indexed(CLUSTERS_KEY));
    return items.map(parseRegistration).sort((a, b) => (a.name < b.name ? -1 : 1));
  }

  async get(name: ClusterName): Promise<RegisteredCluster | undefined> {
    const item = await this.#table.get(registrationKey(name));
    return item && parseRegistration(item);
  }

  async add({ name, access, addedAt }: RegisteredCluster<Access>): Promise<'added' | 'exists'> {
    const item = { ...registrationKey(name), clusterKey: CLUSTERS_KEY, clusterSort: name, addedAt, access };
    return (await this.#table.add(item)) ? 'added' : 'exists';
  }

  async remove(name: ClusterName): Promise<'removed' | 'unknown'> {
    return (await this.#table.delete(registrationKey(name))) ? 'removed' : 'unknown';
  }
}

const text = z.string().min(1);

/** One for both parts, or one for each: a release that knows the first form alone calls the other unreadable, and says so. */
const byPart = <T>(one: z.ZodType<T>) => z.union([one, z.object({ relay: one, evict: one })]);

const accessSchema: z.ZodType<Access> = z.discriminatedUnion('kind', [
  z.object({
    kind: z.literal('eks'),
    clusterName: text,
    region: text,
    role: byPart(z.object({ arn: text, externalId: text.exactOptional() })).exactOptional(),
  }),
  z.object({ kind: z.literal('kubeconfig-secret'), secretArn: byPart(text), context: text.exactOptional() }),
  z.object({ kind: z.literal('local-context'), kubeconfig: text.exactOptional(), context: text }),
]);

const registrationSchema = z.object({
  clusterSort: clusterNameSchema,
  addedAt: z.int().nonnegative(),
  access: z.unknown(),
});

/** Throws `StoreError`; an access alone that cannot be read is the cluster's own problem. */
function parseRegistration(item: Item): RegisteredCluster {
  const what = `item REGISTRATION of ${item['pk']}`;
  const { clusterSort, addedAt, access } = parseStored(registrationSchema, item, what);
  return { name: clusterSort, access: parseAccess(access), addedAt };
}

/** An access as it is stored. */
export function parseAccess(stored: unknown): Access | UnreadableAccess {
  const { data, error } = accessSchema.safeParse(stored);
  if (data !== undefined) return data;
  const { field, fault } = firstFault(error);
  const reason = `its registration cannot be read (${['access', field].filter(Boolean).join('.')}: ${fault}); deploy the release that wrote it, or register the cluster again`;
  return { kind: 'unreadable', reason };
}
