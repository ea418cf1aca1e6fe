import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { loadAll } from 'js-yaml';
import { z } from 'zod';
import { Account } from './account.ts';
import type { TestCluster } from './test-cluster.ts';

const OPERATORS_DIR = join(import.meta.dirname, '../../../cdk/rbac/operators');
const SIZES = ['viewer', 'operator', 'admin'] as const;
export type Size = (typeof SIZES)[number];

const names = z.array(z.string());
const Role = z.object({
  kind: z.literal('ClusterRole'),
  rules: z.array(
    z.object({ apiGroups: names, resources: names, resourceNames: names.optional(), verbs: names }),
  ),
});

/** Creates an account with the permissions that `cdk/rbac/operators` grants to users of this size, and no others. */
export function operatorAccount(cluster: TestCluster, size: Size): Promise<Account> {
  const rules = SIZES.slice(0, SIZES.indexOf(size) + 1).flatMap((each) => rulesOf(each));
  return Account.create(cluster, `a-${size}`, rules);
}

function rulesOf(size: Size) {
  const [role] = loadAll(readFileSync(join(OPERATORS_DIR, `${size}.yaml`), 'utf8'));
  return Role.parse(role).rules.flatMap(({ apiGroups, resources, resourceNames, verbs }) =>
    apiGroups.flatMap((group) =>
      resources.map((resource) => ({
        group,
        resource,
        verbs,
        ...(resourceNames === undefined ? {} : { resourceNames }),
      })),
    ),
  );
}
