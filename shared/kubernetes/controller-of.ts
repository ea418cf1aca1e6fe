import { fieldsOf, itemsOf } from './http/api-json.ts';

/**
 * Of the owners of an object (`metadata.ownerReferences`) the one that controls it, as a reference to it; `undefined`: none
 * does. Upstream: `metav1.GetControllerOf`.
 */
export const controllerOf = (ownerReferences: unknown): Readonly<Record<string, unknown>> | undefined =>
  itemsOf(ownerReferences)
    .map(fieldsOf)
    .find(({ controller }) => controller === true);
