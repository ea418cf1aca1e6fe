import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { load, loadAll } from 'js-yaml';
import type { PodUid } from '#shared/eviction/identity.ts';
import { disruptionPatch } from '#shared/kubernetes/announcement.ts';
import { fieldsOf, itemsOf, textOf } from '#shared/kubernetes/http/api-json.ts';

const ROOT = join(import.meta.dirname, '../../../..');

/** The files of an identity, and the expression by which the API server recognizes the identity. */
const IDENTITIES = [
  {
    name: 'a replica in its cluster',
    prefix: 'taintward-in-cluster',
    files: ['deploy/in-cluster/admission-policy.yaml', 'deploy/in-cluster/admission-policy-nodes.yaml'],
    ours: 'request.userInfo.username == "system:serviceaccount:taintward:taintward"',
  },
  {
    name: 'an agent',
    prefix: 'taintward-agent',
    files: ['deploy/agent/admission-policy.yaml', 'deploy/agent/admission-policy-nodes.yaml'],
    ours: 'request.userInfo.username == "system:serviceaccount:taintward:taintward-agent"',
  },
  {
    name: 'evict',
    prefix: 'taintward-evict',
    files: ['cdk/rbac/admission-policy/pods.yaml', 'cdk/rbac/admission-policy/nodes.yaml'],
    ours: 'has(request.userInfo.groups) && "taintward-evict" in request.userInfo.groups',
  },
] as const;

const read = (file: string): readonly unknown[] => loadAll(readFileSync(join(ROOT, file), 'utf8'));
const policiesOf = (files: readonly string[]) =>
  files
    .flatMap(read)
    .map(fieldsOf)
    .filter(({ kind }) => kind === 'ValidatingAdmissionPolicy')
    .map(({ spec }) => fieldsOf(spec));

for (const { name, prefix, files, ours } of IDENTITIES) {
  test(`the policies for ${name} match only that identity and fail closed`, () => {
    const policies = policiesOf(files);
    assert.equal(policies.length, 2);
    for (const { failurePolicy, matchConditions } of policies) {
      assert.equal(failurePolicy, 'Fail');
      assert.deepEqual(matchConditions, [{ name: 'ours', expression: ours }]);
    }
  });

  test(`the policies for ${name} match the policies of the chart`, () => {
    const [reference] = IDENTITIES;
    const asReference = JSON.parse(
      JSON.stringify(files.flatMap(read))
        .replaceAll(JSON.stringify(ours), JSON.stringify(reference.ours))
        .replaceAll(`"${prefix}-`, `"${reference.prefix}-`),
    );
    assert.deepEqual(asReference, reference.files.flatMap(read));
  });
}

test('the policies allow the DisruptionTarget condition that the service writes', () => {
  const { status } = fieldsOf(disruptionPatch('u' as PodUid, 0, 0));
  const [condition, ...more] = itemsOf(fieldsOf(status)['conditions']).map(fieldsOf);
  assert.deepEqual(more, []);
  const [pods] = policiesOf(IDENTITIES[0].files);
  const text = itemsOf(pods?.['validations'])
    .map((each) => textOf(fieldsOf(each)['expression']))
    .join('\n');
  for (const field of ['type', 'status', 'reason']) {
    assert.ok(text.includes(`c.${field} == "${condition?.[field]}"`), field);
  }
});

test('kustomize includes the policy for pods, and the costlier policy is optional', () => {
  const file = readFileSync(join(ROOT, 'cdk/rbac/admission-policy/kustomization.yaml'), 'utf8');
  assert.deepEqual(fieldsOf(load(file))['resources'], ['pods.yaml']);
  const all = fieldsOf(load(readFileSync(join(ROOT, 'cdk/rbac/kustomization.yaml'), 'utf8')));
  assert.ok(!itemsOf(all['resources']).includes('admission-policy'));
});
