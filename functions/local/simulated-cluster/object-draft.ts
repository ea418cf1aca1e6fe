import { type Drafts, draftSchemas, type ResourceName } from './objects.ts';
import { RESOURCES } from './resources.ts';
import { schemaFault } from './schema-fault.ts';
import { badRequest } from './status.ts';
import { withoutNulls } from './without-nulls.ts';

/** What a client sent, its shape checked. Throws 400. */
export function parseDraft<R extends ResourceName>(resource: R, body: unknown): Drafts[R] {
  const parsed = draftSchemas[resource].safeParse(withoutNulls(body));
  if (parsed.success) return parsed.data;
  const { kind } = RESOURCES[resource];
  throw badRequest(`${kind} in version "v1" cannot be handled as a ${kind}: ${schemaFault(parsed.error)}`);
}

/** Throws 400 for an object of another namespace than the request's. */
export function refuseOtherNamespace({ metadata }: Drafts[ResourceName], namespace: string): void {
  if (metadata.namespace && metadata.namespace !== namespace) {
    throw badRequest('the namespace of the provided object does not match the namespace sent on the request');
  }
}
