import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { loadAll } from 'js-yaml';
import * as z from 'zod';
import { fieldsOf } from '#shared/kubernetes/http/api-json.ts';
import {
  EVICTION_API_PERMISSIONS,
  NEEDED_PERMISSIONS,
  NODE_LEASE_PERMISSION,
} from '#shared/kubernetes/permissions.ts';
import { WORKLOAD_PERMISSIONS } from '#shared/kubernetes/replicas.ts';
import { nodeTakeover } from '#shared/operations/takeover/at-nodes.ts';
import { ConfigMapQueue } from '#shared/state/objects/config-map-queue.ts';
import { FakeObjects } from '#test/world/fake-objects.ts';

const DEPLOY = join(import.meta.dirname, '../../../../deploy/in-cluster');
const QUEUE = 'taintward-asked-in-cluster';
const ACCOUNT = { kind: 'ServiceAccount', name: 'taintward', namespace: 'taintward' };

const Manifest = z.object({
  kind: z.string(),
  metadata: z.object({ name: z.string(), namespace: z.string().optional() }),
  rules: z
    .array(
      z.object({
        apiGroups: z.array(z.string()),
        resources: z.array(z.string()),
        resourceNames: z.array(z.string()).optional(),
        verbs: z.array(z.string()),
      }),
    )
    .default([]),
  roleRef: z.object({ kind: z.string(), name: z.string() }).optional(),
  subjects: z
    .array(z.object({ kind: z.string(), name: z.string(), namespace: z.string().optional() }))
    .default([]),
});

const read = (file: string) =>
  loadAll(readFileSync(join(DEPLOY, file), 'utf8')).map((each) => Manifest.parse(each));
/** Returns the rules of all roles of a kind in a file as `verb resource`. */
const granted = (file: string, kind: string) =>
  read(file)
    .filter((each) => each.kind === kind)
    .flatMap(({ rules }) =>
      rules.flatMap(({ resources, verbs }) =>
        resources.flatMap((resource) => verbs.map((verb) => `${verb} ${resource}`)),
      ),
    );
const named = (permissions: typeof NEEDED_PERMISSIONS) =>
  permissions.map(({ verb, resource }) => `${verb} ${resource}`);

test('a replica may do in the whole cluster exactly what the permission check requires, and get kube-system', () => {
  const identifying = { resources: ['namespaces'], resourceNames: ['kube-system'], verbs: ['get'] };
  assert.deepEqual(
    granted('rbac.yaml', 'ClusterRole').toSorted(),
    [...named(NEEDED_PERMISSIONS), 'get namespaces'].toSorted(),
  );
  for (const file of ['rbac.yaml', '../agent/rbac.yaml']) {
    const rules = read(file).flatMap((each) => (each.kind === 'ClusterRole' ? each.rules : []));
    assert.deepEqual(
      rules.filter(({ resources }) => resources.includes('namespaces')),
      [{ apiGroups: [''], ...identifying }],
      file,
    );
  }
});

test('a replica may read node Leases in their namespace and nowhere else', () => {
  for (const file of ['rbac.yaml', '../agent/rbac.yaml']) {
    const [role] = read(file).filter(
      ({ kind, metadata }) => kind === 'Role' && metadata.namespace === NODE_LEASE_PERMISSION.namespace,
    );
    const { verb, resource, group = '' } = NODE_LEASE_PERMISSION;
    assert.deepEqual(role?.rules, [{ apiGroups: [group], resources: [resource], verbs: [verb] }], file);
    const [binding] = read(file).filter(
      ({ kind, metadata }) =>
        kind === 'RoleBinding' && metadata.namespace === NODE_LEASE_PERMISSION.namespace,
    );
    assert.equal(binding?.roleRef?.name, role?.metadata.name);
  }
});

test('the optional role for the Eviction API grants its permissions', () => {
  assert.deepEqual(granted('eviction-api.yaml', 'ClusterRole'), named(EVICTION_API_PERMISSIONS));
});

test('the optional role for replica counts grants reading workloads', () => {
  assert.deepEqual(granted('replicas.yaml', 'ClusterRole'), named(WORKLOAD_PERMISSIONS));
});

test('the optional binding for takeovers names the role of the takeover', () => {
  const [binding] = read('takeover.yaml');
  const renewer = nodeTakeover({ keys: [], lapseSeconds: 90 }).find(({ kind }) => kind === 'ClusterRole');
  assert.equal(binding?.roleRef?.name, fieldsOf(renewer?.metadata)['name']);
});

test('each role of a replica is bound to its account, and each binding names an existing role', () => {
  for (const file of ['rbac.yaml', 'eviction-api.yaml', 'replicas.yaml']) {
    const all = read(file);
    const roles = all.filter(({ rules }) => rules.length > 0);
    const bindings = all.filter(({ roleRef }) => roleRef);
    assert.deepEqual(
      bindings.map(({ roleRef }) => `${roleRef?.kind} ${roleRef?.name}`),
      roles.map(({ kind, metadata }) => `${kind} ${metadata.name}`),
    );
    for (const { subjects } of bindings) assert.deepEqual(subjects, [ACCOUNT]);
  }
});

test('an operator may do what a viewer may, and an admin what an operator may', () => {
  const all = read('operators.yaml');
  const groups = ['taintward-viewer', 'taintward-operator', 'taintward-admin'];
  const roles = all.flatMap(({ kind, metadata }) => (kind === 'Role' ? metadata.name : []));
  assert.deepEqual(
    all.flatMap(({ roleRef, subjects }) =>
      roleRef ? [[roleRef.name, ...subjects.map(({ name }) => name)]] : [],
    ),
    roles.map((role) => [role, ...groups.slice(groups.indexOf(role))]),
  );
});

test('viewers may change no stored object, and operators no eviction', () => {
  const roles = read('operators.yaml').filter(({ kind }) => kind === 'Role');
  const [viewer, operator] = ['taintward-viewer', 'taintward-operator'].map((name) =>
    roles.find(({ metadata }) => metadata.name === name),
  );
  const changes = (role: z.output<typeof Manifest> | undefined) =>
    (role?.rules ?? []).flatMap(({ resources, verbs }) =>
      verbs.some((verb) => verb !== 'get' && verb !== 'list') ? resources : [],
    );
  assert.deepEqual(changes(viewer), []);
  assert.deepEqual([...new Set(changes(operator))], ['evictionrules', 'configmaps']);
});

test('operators may send a request to the leader, and a second one, and do no more with that ConfigMap', async (t) => {
  const objects = new FakeObjects();
  const calls = Object.entries({ get: 'get', create: 'create', replace: 'update' } as const).map(
    ([method, verb]) => ({ verb, calls: t.mock.method(objects, method as 'get').mock }),
  );
  const queue = new ConfigMapQueue(objects, QUEUE);
  await queue.send([{ body: 'a' }]);
  await queue.send([{ body: 'b' }]);
  const needed = calls.flatMap(({ verb, calls }) => (calls.callCount() > 0 ? [verb] : []));
  const rules = read('operators.yaml').find(
    ({ kind, metadata }) => kind === 'Role' && metadata.name === 'taintward-operator',
  )?.rules;
  const allowed = rules?.flatMap(({ resources, resourceNames: [only] = [undefined], verbs }) =>
    resources.includes('configmaps') && (only ?? QUEUE) === QUEUE ? verbs : [],
  );
  assert.deepEqual(allowed?.toSorted(), needed.toSorted());
});
