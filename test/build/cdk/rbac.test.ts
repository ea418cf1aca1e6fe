import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { load, loadAll } from 'js-yaml';
import * as z from 'zod';
import { TAKEOVER_RULES } from '#functions/cli/takeover/permissions.ts';
import type { Permission } from '#shared/kubernetes/http/call.ts';
import {
  EVICT_PERMISSIONS,
  EVICTION_API_PERMISSIONS,
  NEEDED_PERMISSIONS,
  NODE_LEASE_PERMISSION,
  RELAY_PERMISSIONS,
  TAKEOVER_PERMISSIONS,
} from '#shared/kubernetes/permissions.ts';
import { WORKLOAD_PERMISSIONS } from '#shared/kubernetes/replicas.ts';
import { NODE_TAKEOVER, nodeTakeover } from '#shared/operations/takeover/at-nodes.ts';

const RBAC_DIR = join(import.meta.dirname, '../../../cdk/rbac');

const Rule = z.strictObject({
  apiGroups: z.tuple([z.string()]),
  resources: z.array(z.string()),
  resourceNames: z.array(z.string()).optional(),
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
const placed = z.object({ name: z.string(), namespace: z.string() });
const Role = z.object({
  kind: z.literal('Role'),
  metadata: placed,
  rules: z.array(
    z.object({ apiGroups: z.array(z.string()), resources: z.array(z.string()), verbs: z.array(z.string()) }),
  ),
});
const RoleBinding = z.object({
  kind: z.literal('RoleBinding'),
  metadata: placed,
  roleRef: z.object({ kind: z.literal('Role'), name: z.string() }),
  subjects: z.array(z.object({ kind: z.string(), name: z.string() })),
});
const FlowControl = z.object({
  kind: z.string(),
  metadata: z.object({ name: z.string() }),
  spec: z.record(z.string(), z.unknown()),
});
const Kustomization = z.object({ resources: z.array(z.string()) });

const read = <T>(schema: z.ZodType<T>, ...path: string[]): T =>
  schema.parse(load(readFileSync(join(RBAC_DIR, ...path), 'utf8')));

const granted = (part: string): readonly string[] => flat(read(ClusterRole, part, 'cluster-role.yaml').rules);

const named = (permissions: readonly Permission[]): readonly string[] =>
  permissions.map(({ verb, group = '', resource }) => `${verb} ${group}/${resource}`);

/** Optional: it identifies the cluster. */
const IDENTIFYING = 'get /namespaces/kube-system';

for (const [part, permissions, group] of [
  ['relay', RELAY_PERMISSIONS, 'taintward-relay'],
  ['evict', EVICT_PERMISSIONS, 'taintward-evict'],
  // A part that the identity for evictions needs only where a policy requires it.
  ['eviction-api', EVICTION_API_PERMISSIONS, 'taintward-evict'],
  ['replicas', WORKLOAD_PERMISSIONS, 'taintward-evict'],
] as const) {
  test(`the manifests of ${part} grant exactly the permissions that it needs, once each`, () => {
    const optional = part === 'relay' || part === 'evict' ? [IDENTIFYING] : [];
    assert.deepEqual(granted(part).toSorted(), [...named(permissions), ...optional].toSorted());
  });

  test(`the role of ${part} is bound to the group ${group}`, () => {
    const { roleRef, subjects } = read(ClusterRoleBinding, part, 'cluster-role-binding.yaml');
    assert.equal(roleRef.name, read(ClusterRole, part, 'cluster-role.yaml').metadata.name);
    assert.deepEqual(subjects, [{ kind: 'Group', name: group }]);
    assert.deepEqual(read(Kustomization, part, 'kustomization.yaml').resources, [
      'cluster-role.yaml',
      'cluster-role-binding.yaml',
      ...(part === 'evict' ? ['role.yaml', 'role-binding.yaml'] : []),
    ]);
  });
}

const Rules = z.array(
  z.strictObject({
    apiGroups: z.array(z.string()),
    resources: z.array(z.string()),
    resourceNames: z.array(z.string()).optional(),
    verbs: z.array(z.string()),
  }),
);
test('lets evict read the Leases of nodes in their namespace and nowhere else', () => {
  const { metadata, rules } = read(Role, 'evict', 'role.yaml');
  const { verb, resource, group = '', namespace } = NODE_LEASE_PERMISSION;
  assert.deepEqual(rules, [{ apiGroups: [group], resources: [resource], verbs: [verb] }]);
  const { metadata: bound, roleRef, subjects } = read(RoleBinding, 'evict', 'role-binding.yaml');
  assert.deepEqual([metadata.namespace, bound.namespace], [namespace, namespace]);
  assert.deepEqual([roleRef.name, subjects], [metadata.name, [{ kind: 'Group', name: 'taintward-evict' }]]);
});

const OperatorRole = z.tuple([
  z.object({ kind: z.literal('ClusterRole'), metadata: z.object({ name: z.string() }), rules: Rules }),
  ClusterRoleBinding,
]);
const SIZES = ['viewer', 'operator', 'admin'] as const;

/** Returns rules as `verb group/resource`, with `/name` where a rule is limited to names. */
const flat = (rules: z.output<typeof Rules>): readonly string[] =>
  rules.flatMap(({ apiGroups, resources, resourceNames, verbs }) => {
    const names = resourceNames?.map((name) => `/${name}`) ?? [''];
    return apiGroups.flatMap((group) =>
      resources.flatMap((resource) =>
        names.flatMap((name) => verbs.map((verb) => `${verb} ${group}/${resource}${name}`)),
      ),
    );
  });

describe('the role of a user in a cluster', () => {
  const role = (size: string) =>
    OperatorRole.parse(loadAll(readFileSync(join(RBAC_DIR, 'operators', `${size}.yaml`), 'utf8')));
  const added = (size: string) => flat(role(size)[0].rules);

  test('grows with the size: each role is bound to its group and to the larger ones, and repeats nothing', () => {
    for (const [index, size] of SIZES.entries()) {
      const [{ metadata }, { roleRef, subjects }] = role(size);
      assert.deepEqual([metadata.name, roleRef.name], [`taintward-${size}`, `taintward-${size}`]);
      assert.deepEqual(
        subjects.map(({ name }) => name),
        SIZES.slice(index).map((group) => `taintward-${group}`),
      );
    }
    const all = SIZES.flatMap(added);
    assert.equal(new Set(all).size, all.length);
    assert.deepEqual(
      read(Kustomization, 'operators', 'kustomization.yaml').resources,
      SIZES.map((size) => `${size}.yaml`),
    );
  });

  test('is read-only for viewers', () => {
    assert.ok(added('viewer').every((right) => /^(get|list) /.test(right)));
  });

  test('adds the Eviction API for operators', () => {
    assert.deepEqual(added('operator'), ['create /pods/eviction']);
  });

  test('adds exactly the permissions of taintward takeover for admins', () => {
    const needed = flat(Rules.parse(TAKEOVER_RULES));
    const all = new Set(SIZES.flatMap(added));
    assert.deepEqual(
      needed.filter((right) => !all.has(right)),
      [],
    );
    assert.deepEqual(
      added('admin').filter((right) => !needed.includes(right)),
      [],
    );
  });
});

test('a takeover grants the permissions to renew it and to prove it, each for one name', () => {
  const role = nodeTakeover(NODE_TAKEOVER).find(({ kind }) => kind === 'ClusterRole');
  const permissions = TAKEOVER_PERMISSIONS.map(
    ({ verb, group = '', resource, name }) => `${verb} ${group}/${resource}/${name}`,
  );
  assert.deepEqual(flat(Rules.parse(role?.['rules'])).toSorted(), permissions.toSorted());
});

test('relay and evict together grant exactly the permissions that are checked before a cluster is managed, and kube-system', () => {
  assert.deepEqual(read(Kustomization, 'kustomization.yaml').resources, ['relay', 'evict', 'flow-control']);
  const both = new Set([...granted('relay'), ...granted('evict')]);
  assert.deepEqual([...both].toSorted(), [...named(NEEDED_PERMISSIONS), IDENTIFYING].toSorted());
});

test('the groups of relay and evict have the flow control that the chart gives an agent', () => {
  const specs = (...texts: readonly string[]) =>
    Object.fromEntries(
      texts
        .flatMap((text) => loadAll(text))
        .map((object) => {
          const { kind, metadata, spec } = FlowControl.parse(object);
          return [kind, JSON.parse(JSON.stringify(spec).replaceAll(`"${metadata.name}"`, '"NAME"'))];
        }),
    );
  const folder = join(RBAC_DIR, 'flow-control');
  const { resources } = read(Kustomization, 'flow-control', 'kustomization.yaml');
  const { FlowSchema, ...level } = specs(
    ...resources.map((file) => readFileSync(join(folder, file), 'utf8')),
  );
  const chart = specs(readFileSync(join(RBAC_DIR, '../../deploy/agent/flow-control.yaml'), 'utf8'));
  const subjects = ['taintward-relay', 'taintward-evict'].map((name) => ({ kind: 'Group', group: { name } }));
  const [rule] = chart['FlowSchema'].rules;
  assert.deepEqual(
    { ...level, FlowSchema },
    { ...chart, FlowSchema: { ...chart['FlowSchema'], rules: [{ ...rule, subjects }] } },
  );
});
