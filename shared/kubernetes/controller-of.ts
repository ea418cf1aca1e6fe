import { fieldsOf, itemsOf } from './http/api-json.ts';

/** The owner (`metadata.ownerReferences`) that controls an object. Upstream: `metav1.GetControllerOf`. */
export const controllerOf = (ownerReferences: unknown): Readonly<Record<string, unknown>> | undefined =>
  itemsOf(ownerReferences)
    .map(fieldsOf)
    .find(({ controller }) => controller === true);
