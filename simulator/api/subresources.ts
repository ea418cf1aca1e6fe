import { evict } from '../objects/eviction.ts';
import { fieldsOf, textOf } from '../objects/json.ts';
import type { ApiObject } from '../objects/kinds.ts';
import { selectorText } from '../objects/label-selector.ts';
import { badRequest, StatusError } from '../objects/status.ts';
import type { ObjectStore } from '../objects/store.ts';
import { parseDeleteOptions } from './delete-options.ts';
import { patched } from './patches.ts';
import { sendJson } from './representation.ts';
import { isDryRun, type ObjectCall, originOf } from './request.ts';
import { readBody } from './request-body.ts';
import type { Verb } from './resources.ts';

type Answer = (store: ObjectStore, call: ObjectCall, verb: Verb) => Promise<void>;

/**
 * The subresources that are not part of their object, by name. Each rejects with `StatusError` for a request that it does not
 * accept.
 */
export const SUBRESOURCES: Readonly<Record<string, Answer>> = {
  attach: noContainers('there is nothing to attach to'),
  binding: bind,
  eviction: answerEviction,
  exec: noContainers('nothing can be executed in pod'),
  log: noContainers('there are no logs of pod'),
  portforward: noContainers('there are no ports to forward to of pod'),
  scale: answerScale,
};

/** Rejects requests that only a container could answer. */
function noContainers(what: string): Answer {
  return async (store, { path }) => {
    const { metadata } = store.get('pods', refOf(path));
    const message = `the simulated cluster runs no containers: ${what} "${metadata.name}"`;
    throw new StatusError(405, 'MethodNotAllowed', message);
  };
}

async function bind(store: ObjectStore, call: ObjectCall): Promise<void> {
  const name = textOf(fieldsOf(fieldsOf(await readBody(call))['target'])['name']);
  if (name === '') throw badRequest('target.name must name a node');
  store.bind(refOf(call.path), name);
  sendSuccess(call);
}

const EVICTION_VERSIONS: readonly string[] = ['policy/v1', 'policy/v1beta1', ''];

async function answerEviction(store: ObjectStore, call: ObjectCall): Promise<void> {
  const body = fieldsOf(await readBody(call));
  const { name, namespace } = fieldsOf(body['metadata']);
  const [kind, version] = [textOf(body['kind']) || 'Eviction', textOf(body['apiVersion'])];
  if (kind !== 'Eviction' || !EVICTION_VERSIONS.includes(version)) {
    throw badRequest(`the body must be an Eviction of policy/v1, not a ${kind} of ${version}`);
  }
  if (name !== call.path.name) throw badRequest('name in URL does not match name in Eviction object');
  if (textOf(namespace) !== '' && namespace !== call.path.namespace) {
    throw badRequest('the namespace of the provided object does not match the namespace sent on the request');
  }
  const { orphans, ...request } = parseDeleteOptions(body['deleteOptions']);
  const dryRun = request.dryRun === true || isDryRun(call.query.getAll('dryRun'));
  evict(store, refOf(call.path), { ...request, dryRun });
  sendSuccess(call);
}

const sendSuccess = ({ response }: ObjectCall): void =>
  sendJson(response, 201, { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Success', code: 201 });

/** Reads or changes the size of a workload alone, as `kubectl scale` does. Upstream: `autoscaling/v1` `Scale`. */
async function answerScale(store: ObjectStore, call: ObjectCall, verb: Verb): Promise<void> {
  const { resource } = call.path;
  if (resource !== 'deployments' && resource !== 'replicasets' && resource !== 'statefulsets') return;
  const ref = refOf(call.path);
  if (verb === 'get') {
    sendJson(call.response, 200, scaleOf(store.get(resource, ref)));
    return;
  }
  const body = await readBody(call);
  const scaled = (current: ApiObject) => {
    const scale = fieldsOf(verb === 'patch' ? patched(call.request, scaleOf(current), body) : body);
    const { resourceVersion } = fieldsOf(scale['metadata']);
    return {
      ...current,
      metadata: { ...current.metadata, resourceVersion: textOf(resourceVersion) },
      spec: { ...fieldsOf(current['spec']), replicas: fieldsOf(scale['spec'])['replicas'] ?? 0 },
    };
  };
  sendJson(call.response, 200, scaleOf(store.update(resource, ref, 'main', scaled, originOf(call))));
}

function scaleOf({ metadata, ...object }: ApiObject): object {
  const { name, namespace, uid, resourceVersion, creationTimestamp } = metadata;
  const { replicas, selector } = fieldsOf(object['spec']);
  return {
    kind: 'Scale',
    apiVersion: 'autoscaling/v1',
    metadata: { name, namespace, uid, resourceVersion, creationTimestamp },
    spec: { replicas },
    status: {
      replicas: fieldsOf(object['status'])['replicas'] ?? 0,
      selector: selectorText(fieldsOf(selector)),
    },
  };
}

const refOf = ({ namespace, name = '' }: ObjectCall['path']) => ({ namespace, name });
