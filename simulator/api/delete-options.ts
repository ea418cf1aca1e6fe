import * as z from 'zod';
import { withoutNulls } from '../objects/json.ts';
import { badRequest, schemaFault } from '../objects/status.ts';
import type { DeleteRequest } from '../objects/store.ts';
import { isDryRun } from './request.ts';

/** The fields of `metav1.DeleteOptions` that the simulation uses. */
const deleteOptions = z.object({
  gracePeriodSeconds: z.int().exactOptional(),
  preconditions: z
    .object({ uid: z.string().exactOptional(), resourceVersion: z.string().exactOptional() })
    .exactOptional(),
  dryRun: z.array(z.string()).default([]),
  propagationPolicy: z
    .enum(
      ['Background', 'Orphan'],
      'must be Background or Orphan: Foreground is not supported by the simulated cluster',
    )
    .default('Background'),
});

/** Reads the options of a deletion. Throws 400. */
export function parseDeleteOptions(body: unknown): DeleteRequest & { readonly orphans: boolean } {
  const parsed = deleteOptions.safeParse(withoutNulls(body ?? {}));
  if (!parsed.success) throw badRequest(`DeleteOptions: ${schemaFault(parsed.error)}`);
  const { dryRun, propagationPolicy, ...options } = parsed.data;
  return { ...options, dryRun: isDryRun(dryRun), orphans: propagationPolicy === 'Orphan' };
}
