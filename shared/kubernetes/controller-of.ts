import { fieldsOf, itemsOf } from './http/api-json.ts';

/**
 * Returns the owner of an object (`metadata.ownerReferences`) that controls it, as a reference; `undefined`: none
 * does. Upstream: `metav1.GetControllerOf`.
 */
export const controllerOf = (ownerReferences: unknown): Readonly<Record<string, unknown>> | undefined =>
  itemsOf(ownerReferences)
    .map(fieldsOf)
    .find(({ controller }) => controller === true);
