import * as z from 'zod';
import type { ClusterName } from '#shared/eviction/identity.ts';
import { fromItem, type Item, toItem } from '#shared/store/attribute-values.ts';
import { parseStored } from '#shared/store/item-schemas.ts';
import { clusterNameSchema } from './cluster-name.ts';
import type { Access, RegisteredCluster, UnreadableAccess } from './registry.ts';

/** The index's partition of all registrations. */
export const CLUSTERS_KEY = 'CLUSTERS';

const text = z.string().min(1);

const accessSchema: z.ZodType<Access> = z.discriminatedUnion('kind', [
  z.object({
    kind: z.literal('eks'),
    clusterName: text,
    region: text,
    role: z.object({ arn: text, externalId: text.exactOptional() }).exactOptional(),
  }),
  z.object({ kind: z.literal('kubeconfig-secret'), secretArn: text, context: text.exactOptional() }),
  z.object({ kind: z.literal('local-context'), kubeconfig: text.exactOptional(), context: text }),
]);

const itemSchema = z.object({
  dueSk: clusterNameSchema,
  addedAt: z.int().nonnegative(),
  access: z.unknown(),
});

/** Which registration the index speaks of. Throws `StoreError`. */
export function indexedName(item: Item): ClusterName {
  return parseStored(itemSchema.shape.dueSk, fromItem(item)['dueSk'], 'index key dueSk of a registration');
}

export const registrationKey = (name: ClusterName): Item =>
  toItem({ pk: `CLUSTER#${name}`, sk: 'REGISTRATION' });

/** A registration as an item, whole. */
export function registrationItem({ name, access, addedAt }: RegisteredCluster<Access>): Item {
  return { ...registrationKey(name), ...toItem({ duePk: CLUSTERS_KEY, dueSk: name, addedAt, access }) };
}

/** Reads a REGISTRATION item. Throws `StoreError`; an access alone that cannot be read is the cluster's own problem. */
export function parseRegistration(item: Item): RegisteredCluster {
  const fields = fromItem(item);
  const { dueSk, addedAt, access } = parseStored(itemSchema, fields, `item REGISTRATION of ${fields['pk']}`);
  return { name: dueSk, access: parseAccess(access), addedAt };
}

function parseAccess(stored: unknown): Access | UnreadableAccess {
  const { data, error } = accessSchema.safeParse(stored);
  if (data !== undefined) return data;
  const [issue] = error.issues;
  const field = ['access', ...(issue?.path ?? [])].join('.');
  const reason = `its registration cannot be read (${field}: ${issue?.message}); deploy the release that wrote it, or register the cluster again`;
  return { kind: 'unreadable', reason };
}
