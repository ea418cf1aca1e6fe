import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { load } from 'js-yaml';
import * as z from 'zod';
import { TAKEOVER_RULES } from '#functions/cli/takeover/rights.ts';
import {
  EVICT_RIGHTS,
  EVICTION_API_RIGHTS,
  NEEDED_RIGHTS,
  RELAY_RIGHTS,
  type Right,
} from '#shared/kubernetes/rights.ts';

const RBAC_DIR = join(import.meta.dirname, '../../../cdk/rbac');

const Rule = z.strictObject({
  apiGroups: z.tuple([z.literal('')]),
  resources: z.array(z.string()),
  verbs: z.array(z.string()),
});
const ClusterRole = z.object({
  kind: z.literal('ClusterRole'),
  metadata: z.object({ name: z.string() }),
  rules: z.array(Rule),
});
const ClusterRoleBinding = z.object({
  kind: z.literal('ClusterRoleBinding'),
  roleRef: z.object({ kind: z.literal('ClusterRole'), name: z.string() }),
  subjects: z.array(z.object({ kind: z.string(), name: z.string() })),
});
const Kustomization = z.object({ resources: z.array(z.string()) });

const read = <T>(schema: z.ZodType<T>, ...path: string[]): T =>
  schema.parse(load(readFileSync(join(RBAC_DIR, ...path), 'utf8')));

const granted = (part: string): readonly string[] =>
  read(ClusterRole, part, 'cluster-role.yaml').rules.flatMap(({ resources, verbs }) =>
    resources.flatMap((resource) => verbs.map((verb) => `${verb} ${resource}`)),
  );

const named = (rights: readonly Right[]): readonly string[] =>
  rights.map(({ verb, resource }) => `${verb} ${resource}`);

for (const [part, rights, group] of [
  ['relay', RELAY_RIGHTS, 'taintward-relay'],
  ['evict', EVICT_RIGHTS, 'taintward-evict'],
  // Of the identity that evicts, where a policy asks for it.
  ['eviction-api', EVICTION_API_RIGHTS, 'taintward-evict'],
] as const) {
  test(`the manifests of ${part} grant what it does, once each, and nothing more`, () => {
    assert.deepEqual(granted(part).toSorted(), named(rights).toSorted());
  });

  test(`the role of ${part} is bound to the group ${group}`, () => {
    const { roleRef, subjects } = read(ClusterRoleBinding, part, 'cluster-role-binding.yaml');
    assert.equal(roleRef.name, read(ClusterRole, part, 'cluster-role.yaml').metadata.name);
    assert.deepEqual(subjects, [{ kind: 'Group', name: group }]);
    assert.deepEqual(read(Kustomization, part, 'kustomization.yaml').resources, [
      'cluster-role.yaml',
      'cluster-role-binding.yaml',
    ]);
  });
}

const AnyRole = z.object({ rules: z.array(z.record(z.string(), z.array(z.string()))) });

test('the role of whoever takes over grants what taintward takeover does, and to look at the metrics of EKS', () => {
  const { rules } = read(AnyRole, 'takeover', 'cluster-role.yaml');
  const metrics = { apiGroups: ['metrics.eks.amazonaws.com'], resources: ['kcm/metrics'], verbs: ['get'] };
  assert.deepEqual(rules, [...TAKEOVER_RULES, metrics]);
  const { roleRef, subjects } = read(ClusterRoleBinding, 'takeover', 'cluster-role-binding.yaml');
  assert.deepEqual(
    [roleRef.name, subjects],
    ['taintward-takeover-operator', [{ kind: 'Group', name: 'taintward-takeover-operator' }]],
  );
});

test('both together grant exactly what is checked before a cluster is managed', () => {
  assert.deepEqual(read(Kustomization, 'kustomization.yaml').resources, ['relay', 'evict']);
  const both = new Set([...granted('relay'), ...granted('evict')]);
  assert.deepEqual([...both].toSorted(), named(NEEDED_RIGHTS).toSorted());
});
