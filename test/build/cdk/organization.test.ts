import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { Granted } from './permissions/granted.ts';
import { allows } from './permissions/policy.ts';
import { synthesized } from './stack/synthesized.ts';

const OURS = 'o-a1b2c3d4e5';

/** Those who assume roles of clusters, and a role that each may. */
function assuming(of: Granted) {
  return [
    { who: 'the relay', statements: of.ofTasks(), role: 'taintward-relay' },
    { who: 'evict', statements: of.ofFunction('taintward-evict'), role: 'taintward-evict' },
    { who: 'an administrator', statements: of.ofPolicy('taintward-admin'), role: 'taintward-access' },
  ];
}

/** Whether who has these statements may assume a role of an account of that organization; `undefined`: of none. */
const assumes = (
  { statements, role }: Pick<ReturnType<typeof assuming>[number], 'statements' | 'role'>,
  organization: string | undefined,
) =>
  allows(statements, [], {
    action: 'sts:AssumeRole',
    resource: `arn:aws:iam::210987654321:role/${role}`,
    context: organization === undefined ? {} : { 'aws:ResourceOrgID': [organization] },
  });

describe('where the organization is named', () => {
  const all = assuming(new Granted(synthesized({ 'taintward:organization': OURS })));

  test('a role of another account of the organization is assumed', () => {
    for (const each of all) assert.equal(assumes(each, OURS), true, each.who);
  });

  test('a role of another organization is assumed by nobody, whatever its name', () => {
    for (const each of all) assert.equal(assumes(each, 'o-zzzzzzzzzz'), false, each.who);
  });

  test('nor is one of an account that is in none', () => {
    for (const each of all) assert.equal(assumes(each, undefined), false, each.who);
  });
});

test('where none is named a role counts by its name, as the account may be in none', () => {
  for (const each of assuming(new Granted(synthesized()))) {
    assert.equal(assumes(each, undefined), true, each.who);
  }
});
