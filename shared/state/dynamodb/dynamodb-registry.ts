import * as z from 'zod';
import type { ClusterName } from '#shared/eviction/identity.ts';
import { escapeForDisplay } from '#shared/text/escape-for-display.ts';
import { firstFault, readAs } from '#shared/text/read-as.ts';
import { epochMs } from '#shared/time/epoch-ms.ts';
import {
  type Access,
  accessSchema,
  type ClusterRegistry,
  clusterNameSchema,
  type RegisteredCluster,
  type Registrations,
  type UnreadableAccess,
} from '../registry.ts';
import { CLUSTER_PREFIX, type Item, type Key } from './dynamodb-item.ts';
import type { DynamoDbTable } from './dynamodb-table.ts';

const CLUSTERS_KEY = 'CLUSTERS';

const REGISTRATION = 'REGISTRATION';

const registrationKey = (name: ClusterName): Key => ({ pk: `${CLUSTER_PREFIX}${name}`, sk: REGISTRATION });

/** The registry as `REGISTRATION` items of the store's table, listed by its index. */
export class DynamoDbClusterRegistry implements ClusterRegistry {
  readonly #table: DynamoDbTable;

  constructor(table: DynamoDbTable) {
    this.#table = table;
  }

  async list(): Promise<Registrations> {
    const clusters: RegisteredCluster[] = [];
    const strays: string[] = [];
    for await (const item of this.#table.indexed(CLUSTERS_KEY)) {
      const name = nameIn(item);
      if (name === undefined) strays.push(strayText(item));
      else clusters.push(registrationOf(name, item));
    }
    return { clusters: clusters.sort((a, b) => (a.name < b.name ? -1 : 1)), strays: strays.sort() };
  }

  async get(name: ClusterName): Promise<RegisteredCluster | undefined> {
    const item = await this.#table.get(registrationKey(name));
    return item && registrationOf(name, item);
  }

  async add(cluster: RegisteredCluster<Access>): Promise<'added' | 'exists'> {
    return (await this.#table.add(itemOf(cluster))) ? 'added' : 'exists';
  }

  async replace(cluster: RegisteredCluster<Access>): Promise<'replaced' | 'unknown'> {
    return (await this.#table.replace(itemOf(cluster))) ? 'replaced' : 'unknown';
  }

  async remove(name: ClusterName): Promise<'removed' | 'unknown'> {
    return (await this.#table.delete(registrationKey(name))) ? 'removed' : 'unknown';
  }
}

const itemOf = ({ name, access, addedAt }: RegisteredCluster<Access>): Item => ({
  ...registrationKey(name),
  clusterKey: CLUSTERS_KEY,
  clusterSort: name,
  addedAt,
  access,
});

const text = z.string().min(1);

const storedAccess = accessSchema({ object: z.object, roleArn: text, secretArn: text });

function nameIn({ pk, sk }: Item): ClusterName | undefined {
  if (sk !== REGISTRATION || typeof pk !== 'string' || !pk.startsWith(CLUSTER_PREFIX)) return undefined;
  return clusterNameSchema.safeParse(pk.slice(CLUSTER_PREFIX.length)).data;
}

const strayText = ({ pk, sk }: Item): string =>
  `The item ${escapeForDisplay(`${sk}`)} of ${escapeForDisplay(`${pk}`)} is not a valid cluster registration.`;

/** Unreadable parts of the item affect only this cluster. */
function registrationOf(name: ClusterName, { addedAt, access }: Item): RegisteredCluster {
  const { data, error } = readAs(epochMs, addedAt);
  if (data === undefined) return { name, access: unreadable('addedAt', error) };
  return { name, access: parseAccess(access), addedAt: data };
}

export function parseAccess(stored: unknown): Access | UnreadableAccess {
  const { data, error } = readAs(storedAccess, stored);
  return data ?? unreadable('access', error);
}

function unreadable(part: string, error: z.ZodError): UnreadableAccess {
  const { field, fault } = firstFault(error);
  const where = [part, field].filter(Boolean).join('.');
  const reason = `its registration cannot be read (${where}: ${fault}); deploy the release that wrote it, or register the cluster again`;
  return { kind: 'unreadable', reason };
}
