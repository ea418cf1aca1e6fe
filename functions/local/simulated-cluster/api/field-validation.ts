import { API_VERSIONS, KINDS } from '../objects/kinds.ts';
import { schemaOf, unknownFields } from '../objects/schema.ts';
import { badRequest } from '../objects/status.ts';
import type { ObjectCall } from './request.ts';

/** What a `Warning` header's code and agent are to a Kubernetes client. */
const WARNING = '299 -';

/**
 * Looks for fields that the kind does not have: with `fieldValidation=Strict` they are refused (400), with `Ignore` ignored,
 * and else the client is warned, as by the real server.
 */
export function checkFields({ response, query, path: { resource } }: ObjectCall, body: unknown): void {
  const mode = query.get('fieldValidation') || 'Warn';
  if (mode === 'Ignore') return;
  const faults = unknownFields(schemaOf(resource), body).map((field) => `unknown field "${field}"`);
  if (faults.length === 0) return;
  if (mode === 'Strict') {
    const [kind, version] = [KINDS[resource], API_VERSIONS[resource].replace(/^.*\//, '')];
    throw badRequest(
      `${kind} in version "${version}" cannot be handled as a ${kind}: strict decoding error: ${faults.join(', ')}`,
    );
  }
  response.setHeader(
    'warning',
    faults.map((fault) => `${WARNING} ${JSON.stringify(fault)}`),
  );
}
