import { ApiError } from '#shared/kubernetes/http/api-error.ts';
import { fieldsOf } from '#shared/kubernetes/http/api-json.ts';
import type { Objects } from '#shared/kubernetes/objects.ts';
import { PolicyError } from '#shared/state/policy-document.ts';
import { checkedPolicy, type PolicySource } from '#shared/state/policy-file.ts';
import type { StoreError } from '#shared/state/store.ts';
import { orStoreError } from './change-object.ts';

const NAME = 'taintward-policy';
const KEY = 'policy.yaml';
/** A change takes effect within 30 s. */
export const CONFIG_MAP_MS = 25_000;

/**
 * The ConfigMap that owns the policy, if it exists: the chart's `service.policy`. It is read from the API server, because a
 * replica's mounted copy may be older than the policy that another replica applied.
 */
export function configMapPolicy(objects: Objects, namespace: string): PolicySource {
  const owner = `ConfigMap ${namespace}/${NAME}`;
  return {
    owner,
    everyMs: CONFIG_MAP_MS,
    async read() {
      const object = await orStoreError(objects.get(NAME)).catch(unlessForbidden);
      if (object === undefined) return undefined;
      const text = fieldsOf(fieldsOf(object)['data'])[KEY];
      if (typeof text !== 'string')
        throw new PolicyError(`${owner} has no ${KEY}. Add it, or delete the ConfigMap.`);
      return checkedPolicy(owner, text);
    },
  };
}

/** Without this permission, which other installations may lack, pods are evicted by the applied policy. */
function unlessForbidden(error: StoreError): never {
  const { cause, message } = error;
  throw cause instanceof ApiError && cause.status === 403 ? new PolicyError(message) : error;
}
