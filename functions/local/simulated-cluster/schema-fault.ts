import type * as z from 'zod';

/** The first thing that is wrong, and where: `spec.taints.0.key: Invalid input: …`. */
export function schemaFault({ issues: [issue] }: z.ZodError): string {
  const path = issue?.path.join('.') ?? '';
  return `${path === '' ? '' : `${path}: `}${issue?.message ?? 'is invalid'}`;
}
