import { defined } from '#shared/defined.ts';
import { fieldsOf } from '#shared/kubernetes/http/api-json.ts';
import type { KubernetesObject } from '#shared/kubernetes/objects.ts';
import type { History } from '#shared/state/history.ts';
import { gonePods, kubernetesHistory } from '#shared/state/objects/kubernetes-history.ts';
import { KubernetesStore } from '#shared/state/objects/kubernetes-store.ts';
import {
  historyOf,
  type KeptNode,
  nodeEviction,
  nothingKept,
  pastName,
  readNodeEviction,
} from '#shared/state/objects/node-eviction.ts';
import { ObjectLeases } from '#shared/state/objects/object-leases.ts';
import { objectPermits } from '#shared/state/objects/object-permits.ts';
import { ObjectRulesStore } from '#shared/state/objects/object-rules-store.ts';
import { pack, unpack } from '#shared/state/objects/packed.ts';
import { FakeObjects } from '#test/world/fake-objects.ts';
import { CLUSTER, FIRST, NOW, REF, SECOND, THIRD } from './messages.ts';
import { FAULTS, HISTORY_MEANING, KEPT_MEANING, type Keepers, readKept, writeKept } from './stored.ts';

const KINDS = ['nodeevictions', 'evictionrules', 'leases', 'configmaps'] as const;
/** Stored objects by resource. Packed fields are unpacked under `packed`. */
export type KeptObjects = Readonly<Record<(typeof KINDS)[number], readonly object[]>>;

/** The state that a service stores in its cluster. */
interface InCluster extends Keepers {
  readonly objects: Readonly<Record<(typeof KINDS)[number], FakeObjects>>;
  readonly store: KubernetesStore;
  readonly history: History;
  readonly rulesStore: ObjectRulesStore;
}

/** What an object for earlier ends holds. */
const SLOT: Pick<KeptNode, 'past' | 'gone'> = {
  past: { current: 1, newest: [NOW - 2, NOW - 1] },
  gone: [
    [NOW - 2, 'evicted', [FIRST, SECOND]],
    [NOW - 1, 'already-gone', [THIRD]],
  ],
};

/** The meaning of such objects. */
export const OBJECTS_MEANING = { ...KEPT_MEANING, ...HISTORY_MEANING, faults: FAULTS, slot: SLOT };

export function emptyCluster(): InCluster {
  const objects = {
    nodeevictions: new FakeObjects(),
    evictionrules: new FakeObjects(),
    leases: new FakeObjects(),
    configmaps: new FakeObjects(),
  };
  const store = new KubernetesStore({ objects: objects.nodeevictions, own: CLUSTER });
  return {
    objects,
    store,
    history: kubernetesHistory(store, objects.configmaps),
    leases: new ObjectLeases(objects.leases),
    rulesStore: new ObjectRulesStore({ objects: objects.evictionrules }),
    permits: objectPermits(objects.configmaps),
  };
}

/** Returns objects of each kind, with all optional fields, as the current code writes them. */
export async function writtenObjects(): Promise<KeptObjects> {
  const cluster = emptyCluster();
  await writeKept(cluster);
  const slot = { ...nothingKept(REF, pastName(REF, 0)), revision: 1, ...SLOT };
  await cluster.objects.nodeevictions.create(nodeEviction(slot));
  const listed = KINDS.map(async (kind) => {
    const objects = await Array.fromAsync(cluster.objects[kind].list(), (object) =>
      opened(unversioned(object)),
    );
    return [kind, objects] as const;
  });
  return Object.fromEntries(await Promise.all(listed)) as unknown as KeptObjects;
}

/** Stores these objects. */
export async function fill(
  { objects }: ReturnType<typeof emptyCluster>,
  written: KeptObjects,
): Promise<void> {
  for (const kind of KINDS)
    for (const object of written[kind]) await objects[kind].create(closed(object) as KubernetesObject);
}

/** Returns the content that the current code reads from such objects. */
export async function readObjects(written: KeptObjects): Promise<typeof OBJECTS_MEANING> {
  const cluster = emptyCluster();
  await fill(cluster, written);
  const noted = (await cluster.store.allOf(REF)).flatMap(historyOf).flatMap((moment) => moment.noted);
  const gone = [...(await gonePods(cluster.objects.configmaps, CLUSTER).read())];
  const faults = (await cluster.leases.read(CLUSTER))?.faults ?? [];
  const { past, gone: tombstones } = readNodeEviction(
    await cluster.objects.nodeevictions.get(pastName(REF, 0)),
  );
  const slot = { ...defined({ past }), gone: tombstones };
  return { ...(await readKept(cluster)), noted, gone, faults, slot };
}

function unversioned(object: unknown): object {
  const { metadata, ...rest } = fieldsOf(object);
  const { resourceVersion: _resourceVersion, ...lasting } = fieldsOf(metadata);
  return { ...rest, metadata: lasting };
}

/** Prefix of gzip data in base64. */
const PACKED = /^H4sI/;

function opened(value: unknown): unknown {
  if (typeof value === 'string') return PACKED.test(value) ? { packed: unpack(value, 'record') } : value;
  if (Array.isArray(value)) return value.map(opened);
  return isObject(value)
    ? Object.fromEntries(Object.entries(value).map(([key, each]) => [key, opened(each)]))
    : value;
}

/** Returns an object in its stored form: with its fields packed. */
export function closed(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(closed);
  if (!isObject(value)) return value;
  const { packed, ...rest } = value;
  if (isObject(packed) && Object.keys(rest).length === 0) return pack(packed);
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, closed(each)]));
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null;
