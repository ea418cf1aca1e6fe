import * as z from 'zod';
import { identityOf, type RegisteredCluster } from '#shared/state/registry.ts';

const arns = z.array(z.string());
/** The secrets and roles that IAM lets relays and `evict` use, as ARNs with the wildcards of IAM. */
export const clusterGrantsSchema = z.object({ both: arns, relay: arns, evict: arns });
export type ClusterGrants = z.output<typeof clusterGrantsSchema>;

/** Returns why IAM lets a part of the service not use its secret or role for a cluster, and the fix. */
export function ungrantedAccess(
  access: RegisteredCluster['access'],
  { both, ...own }: ClusterGrants,
): string | undefined {
  for (const part of ['relay', 'evict'] as const) {
    const arn = identityOf(access, part);
    if (arn === undefined) continue;
    const [what, service, setting] = arn.includes(':iam:')
      ? ['role', ':iam:', 'clusterRoles']
      : ['secret', ':secretsmanager:', 'kubeconfigSecrets'];
    const patterns = [...both, ...own[part]].filter((pattern) => pattern.includes(service));
    // A secret may be named without the dash and the six characters that Secrets Manager appends.
    if (patterns.some((pattern) => isLike(pattern, arn) || isLike(pattern, `${arn}-??????`))) continue;
    return `IAM does not let ${part === 'relay' ? 'relays' : 'evict'} use ${arn}, which matches none of ${patterns.join(', ')}. Use a ${what} with a name that matches, or add the name to taintward:${setting} and deploy the stack again.`;
  }
  return undefined;
}

/** Reports whether a text matches a pattern: `*` is any text, `?` any character. */
function isLike(pattern: string, text: string): boolean {
  const source = pattern
    .replace(/[\\^$.+|()[\]{}]/g, '\\$&')
    .replaceAll('*', '.*')
    .replaceAll('?', '.');
  return new RegExp(`^${source}$`).test(text);
}
