import { fieldsOf, textOf } from '../objects/json.ts';
import type { ApiObject } from '../objects/kinds.ts';
import { disown } from '../objects/ownership.ts';
import { badRequest, conflict, methodNotAllowed } from '../objects/status.ts';
import type { ObjectStore } from '../objects/store.ts';
import { parseDeleteOptions } from './delete-options.ts';
import { patched } from './patches.ts';
import { representation, represented, representedList, sendJson } from './representation.ts';
import { type ApiPath, flagIn, numberIn, type ObjectCall, originOf, selectorIn } from './request.ts';
import { readBody } from './request-body.ts';
import { RESOURCES, type Verb } from './resources.ts';
import { SUBRESOURCES } from './subresources.ts';
import { answerWatch } from './watch.ts';

/** Performs a request about objects and sends the answer. Rejects with `StatusError` if the request is invalid or not allowed. */
export async function answerForObjects(store: ObjectStore, call: ObjectCall): Promise<void> {
  const { request, path, query } = call;
  const verb = verbOf(request.method, path, flagIn(query, 'watch'));
  if (verb === undefined || !verbsOf(path).includes(verb)) throw methodNotAllowed();
  const subresource = SUBRESOURCES[path.subresource];
  if (subresource !== undefined) {
    await subresource(store, call, verb);
    return;
  }
  switch (verb) {
    case 'get':
      sendObject(store, call, 200, store.get(path.resource, refOf(path)));
      return;
    case 'list':
      sendList(store, call);
      return;
    case 'watch':
      answerWatch(store, call);
      return;
    case 'create': {
      const body = await readBody(call);
      sendObject(store, call, 201, store.create(path.resource, path.namespace, body, originOf(call)));
      return;
    }
    case 'update': {
      const body = await readBody(call);
      const replace = (current: ApiObject) => {
        checkUid(path, current, body);
        return body;
      };
      sendObject(store, call, 200, update(store, call, replace));
      return;
    }
    case 'patch': {
      const patch = await readBody(call);
      sendObject(
        store,
        call,
        200,
        update(store, call, (current) => patched(request, current, patch)),
      );
      return;
    }
    case 'delete':
      remove(store, call, await readBody(call));
      return;
    default:
      return verb satisfies never;
  }
}

const update = (store: ObjectStore, call: ObjectCall, change: (current: ApiObject) => unknown): ApiObject =>
  store.update(call.path.resource, refOf(call.path), partOf(call.path), change, originOf(call));

function sendObject(
  store: ObjectStore,
  { request, response, query, path }: ObjectCall,
  code: number,
  object: ApiObject,
): void {
  const as = representation(request.headers.accept, query.get('includeObject'));
  sendJson(response, code, represented(object, path.resource, as, store.now()));
}

function sendList(store: ObjectStore, { request, response, query, path }: ObjectCall): void {
  const as = representation(request.headers.accept, query.get('includeObject'));
  store.mustHaveReached(numberIn(query, 'resourceVersion') ?? 0);
  if (query.get('resourceVersionMatch') === 'Exact') {
    throw badRequest('resourceVersionMatch Exact is not supported by the simulated cluster: leave it out');
  }
  const token = query.get('continue') ?? '';
  const limit = numberIn(query, 'limit') ?? 0;
  const { items, version, remainingItemCount, ...more } = store.list(path.resource, {
    namespace: path.namespace,
    selects: selectorIn(query, path.resource),
    ...(limit === 0 ? {} : { limit }),
    ...(token === '' ? {} : { continue: token }),
  });
  // The real server counts the remaining objects only for a whole collection.
  const counted = query.has('fieldSelector') || query.has('labelSelector') ? {} : { remainingItemCount };
  const metadata = { resourceVersion: String(version), ...more, ...counted };
  sendJson(response, 200, representedList(items, path.resource, metadata, as, store.now()));
}

/** The real server treats a PUT's uid as a precondition, and a PATCH's uid as a change of an immutable field. */
function checkUid({ resource }: ApiPath, { metadata }: ApiObject, body: unknown): void {
  const uid = textOf(fieldsOf(fieldsOf(body)['metadata'])['uid']);
  if (uid === '' || uid === metadata.uid) return;
  const why = `Precondition failed: UID in precondition: ${uid}, UID in object meta: ${metadata.uid}`;
  throw conflict(resource, metadata.name, why);
}

function remove(store: ObjectStore, call: ObjectCall, body: unknown): void {
  const { response, query, path } = call;
  const seconds = numberIn(query, 'gracePeriodSeconds');
  const policy = query.get('propagationPolicy');
  const { orphans, ...options } = parseDeleteOptions({
    ...fieldsOf(body),
    ...(policy === null ? {} : { propagationPolicy: policy }),
    ...(query.has('dryRun') ? { dryRun: query.getAll('dryRun') } : {}),
    ...(seconds === undefined ? {} : { gracePeriodSeconds: seconds }),
  });
  const { object, gone } = store.delete(path.resource, refOf(path), options);
  if (orphans && gone && options.dryRun !== true) disown(store, object);
  if (!gone || path.resource === 'pods') {
    sendObject(store, call, 200, object);
    return;
  }
  const details = { name: object.metadata.name, kind: path.resource, uid: object.metadata.uid };
  sendJson(response, 200, { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Success', details });
}

function verbOf(
  method: string | undefined,
  { name, subresource }: ApiPath,
  watches: boolean,
): Verb | undefined {
  switch (method) {
    case 'GET':
      if (name !== undefined) return 'get';
      return watches ? 'watch' : 'list';
    case 'POST':
      return name === undefined || subresource !== '' ? 'create' : undefined;
    case 'PUT':
      return name === undefined ? undefined : 'update';
    case 'PATCH':
      return name === undefined ? undefined : 'patch';
    case 'DELETE':
      return name === undefined ? undefined : 'delete';
    default:
      return undefined;
  }
}

function verbsOf({ resource, subresource }: ApiPath): readonly Verb[] {
  const { verbs, subresources } = RESOURCES[resource];
  return subresource === '' ? verbs : (subresources.find(({ name }) => name === subresource)?.verbs ?? []);
}

const refOf = ({ namespace, name = '' }: ApiPath) => ({ namespace, name });
const partOf = ({ subresource }: ApiPath) => (subresource === 'status' ? 'status' : 'main');
