import { fieldsOf, withoutNulls } from '../objects/json.ts';
import { API_VERSIONS, type ApiObject, KINDS } from '../objects/kinds.ts';
import { badRequest, StatusError } from '../objects/status.ts';
import type { ObjectStore } from '../objects/store.ts';
import { flagIn, type ObjectCall, originOf } from './request.ts';

/** The media type of a PATCH that says what its sender wants of an object, as YAML, of which JSON is a part. */
export const APPLY = 'application/apply-patch+yaml';

/**
 * Server-side apply. Throws 409 for fields that somebody else owns, 422 without the parameter `fieldManager`, 400 for a body
 * that is no object of the kind.
 */
export function applyPatch(
  store: ObjectStore,
  call: ObjectCall,
  body: unknown,
): { readonly object: ApiObject; readonly isNew: boolean } {
  const { resource, namespace, name = '', subresource } = call.path;
  if (!call.query.get('fieldManager')) {
    const message =
      'PatchOptions.meta.k8s.io "" is invalid: fieldManager: Required value: is required for apply patch';
    throw new StatusError(422, 'Invalid', message);
  }
  const { kind, apiVersion, metadata, ...fields } = fieldsOf(withoutNulls(body));
  if (kind !== KINDS[resource] || apiVersion !== API_VERSIONS[resource]) {
    throw badRequest(
      `the applied object must be a ${KINDS[resource]} of ${API_VERSIONS[resource]}, not a ${kind} of ${apiVersion}`,
    );
  }
  if (fieldsOf(metadata)['managedFields'] !== undefined) {
    throw badRequest('metadata.managedFields must be nil: leave it out of what you apply');
  }
  const part = subresource === 'status' ? 'status' : 'main';
  // Each half of an object is applied by itself.
  const wanted = Object.entries(fields).filter(([field]) => (field === 'status') === (part === 'status'));
  const named = { ...fieldsOf(metadata), name, ...(namespace === '' ? {} : { namespace }) };
  return store.apply(
    resource,
    { namespace, name },
    part,
    { ...Object.fromEntries(wanted), kind, apiVersion, metadata: named } as unknown as ApiObject,
    { ...originOf(call), force: flagIn(call.query, 'force') },
  );
}
