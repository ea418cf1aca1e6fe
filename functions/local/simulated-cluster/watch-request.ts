import type { ObjectCall } from './object-requests.ts';
import type { ApiObject } from './objects/kinds.ts';
import { StatusError } from './objects/status.ts';
import type { ObjectStore } from './objects/store.ts';
import { flagIn, numberIn, selectorIn } from './query.ts';
import { representation, represented } from './representation.ts';
import { RESOURCES } from './resources.ts';
import { WatchStream } from './watch-stream.ts';

/** What the real server gives a watch that names no time, at least (`--min-request-timeout`). */
const WATCH_TIMEOUT_SECONDS = 1800;
/** A day: more than any client asks for, and what a timer can hold. */
const MAX_WATCH_TIMEOUT_SECONDS = 86_400;

/**
 * Answers a watch: without a version (or 0), or when the client asks for initial events, what is there comes
 * first; then what changes. Throws `StatusError` for a request that is wrong; a version that is forgotten is
 * told inside the stream, as the real server does.
 */
export function answerWatch(store: ObjectStore, { request, response, query, path }: ObjectCall): void {
  const { resource, namespace } = path;
  const as = representation(request.headers.accept, query.get('includeObject'));
  const selects = selectorIn(query, resource);
  const given = numberIn(query, 'resourceVersion') ?? 0;
  const wantsInitial = flagIn(query, 'sendInitialEvents');
  const seconds = numberIn(query, 'timeoutSeconds') || WATCH_TIMEOUT_SECONDS;
  const bookmark = (annotations?: object) => ({
    kind: RESOURCES[resource].kind,
    apiVersion: 'v1',
    metadata: {
      resourceVersion: String(store.version),
      ...(annotations === undefined ? {} : { annotations }),
    },
  });

  let unsubscribe = () => {};
  const stream = new WatchStream(
    response,
    {
      timeoutMs: Math.min(seconds, MAX_WATCH_TIMEOUT_SECONDS) * 1000,
      ...(flagIn(query, 'allowWatchBookmarks') ? { bookmark: () => bookmark() } : {}),
    },
    () => unsubscribe(),
  );
  let isFirst = true;
  const tell = (type: 'ADDED' | 'MODIFIED' | 'DELETED', object: ApiObject): void => {
    stream.send(type, represented(object, resource, as, store.now(), isFirst));
    isFirst = false;
  };

  const showsPresent = wantsInitial || given === 0;
  try {
    if (showsPresent) {
      for (const object of store.list(resource, { namespace, selects }).items) tell('ADDED', object);
    }
    if (wantsInitial) stream.send('BOOKMARK', bookmark({ 'k8s.io/initial-events-end': 'true' }));
    const version = showsPresent ? store.version : given;
    unsubscribe = store.watch(resource, { namespace, selects, version }, ({ type, object }) =>
      tell(type, object),
    );
  } catch (error) {
    if (!(error instanceof StatusError)) throw error;
    stream.fail(error);
  }
}
