import { ApiError } from '#shared/kubernetes/http/api-error.ts';
import { fieldsOf, itemsOf, textOf } from '#shared/kubernetes/http/api-json.ts';
import type { AdminApi } from './admin-api.ts';
import { until } from './until.ts';

/** A kind of objects that an API server serves. */
export interface ServedKind {
  /** The path that lists all its objects: `/api/v1/pods`. */
  readonly path: string;
  readonly resource: string;
  readonly namespaced: boolean;
  readonly verbs: readonly unknown[];
}

/**
 * Returns every kind that an API server serves, in its preferred version. Discovery names a group for up to a second
 * after its removal.
 */
export async function servedKinds(api: AdminApi): Promise<readonly ServedKind[]> {
  const lists = await until('every group that is named is served', async () => {
    const groups = itemsOf(fieldsOf(await api.read('/apis'))['groups']).map(fieldsOf);
    const preferred = groups.map(({ preferredVersion }) => fieldsOf(preferredVersion)['groupVersion']);
    const paths = ['/api/v1', ...preferred.map((version) => `/apis/${textOf(version)}`)];
    try {
      return await Promise.all(
        paths.map(async (path) => ({ path, resources: fieldsOf(await api.read(path))['resources'] })),
      );
    } catch (error) {
      if (error instanceof ApiError && error.status === 404) return undefined;
      throw error;
    }
  });
  return lists.flatMap(({ path, resources }) =>
    itemsOf(resources)
      .map(fieldsOf)
      .filter(({ name }) => !textOf(name).includes('/'))
      .map(({ name, namespaced, verbs }) => ({
        path: `${path}/${textOf(name)}`,
        resource: textOf(name),
        namespaced: namespaced === true,
        verbs: itemsOf(verbs),
      })),
  );
}

/**
 * Returns each object that contains a word in any field, as `resource namespace/name`. Events are left out because they
 * expire by themselves.
 */
export async function objectsContaining(word: string, api: AdminApi): Promise<ReadonlySet<string>> {
  const kinds = (await servedKinds(api)).filter(
    ({ resource, verbs }) => verbs.includes('list') && resource !== 'events',
  );
  const found = await Promise.all(
    kinds.map(async ({ path, resource }) =>
      itemsOf(fieldsOf(await listed(path, api))['items'])
        .map(fieldsOf)
        .filter((object) => JSON.stringify(withoutManagers(object)).includes(word))
        .map(({ metadata }) => {
          const { namespace, name } = fieldsOf(metadata);
          return `${resource} ${textOf(namespace)}/${textOf(name)}`;
        }),
    ),
  );
  return new Set(found.flat());
}

/**
 * Lists a kind. The API server rejects the list of a kind that is being added or removed for about a second; a removed
 * kind has no objects.
 */
const listed = (path: string, api: AdminApi): Promise<unknown> =>
  until(`${path} is listed`, async () => {
    try {
      return await api.read(path);
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      if (error.status === 404) return {};
      if (error.status === 429 || error.status === 503) return undefined;
      throw error;
    }
  });

/** `managedFields` keeps the last manager of a field even after the change was undone. */
const withoutManagers = ({
  metadata,
  ...object
}: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> => ({
  ...object,
  metadata: { ...fieldsOf(metadata), managedFields: [] },
});

/**
 * Finalizes a namespace that is being deleted, as the namespace controller does; the cluster may have no such
 * controller.
 */
export async function endNamespace(namespace: string, api: AdminApi): Promise<void> {
  for (const kind of await servedKinds(api)) {
    if (!kind.namespaced || !kind.verbs.includes('deletecollection')) continue;
    const collection = kind.path.replace(/\/([^/]+)$/, `/namespaces/${namespace}/$1`);
    await api.remove(collection, { gracePeriodSeconds: 0 });
  }
  const path = `/api/v1/namespaces/${namespace}`;
  const object = await api.read(path).catch((error: unknown) => {
    if (!(error instanceof ApiError && error.status === 404)) throw error;
  });
  if (object !== undefined) await api.replace(`${path}/finalize`, { ...fieldsOf(object), spec: {} });
}
