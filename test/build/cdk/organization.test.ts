import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { Granted } from './permissions/granted.ts';
import { allows } from './permissions/policy.ts';
import { synthesized } from './stack/synthesized.ts';

const OURS = 'o-a1b2c3d4e5';

/** Returns the principals that assume roles of clusters, with a role that each may assume. */
function assuming(granted: Granted) {
  return [
    { who: 'the relay', statements: granted.ofTasks(), role: 'taintward-relay' },
    { who: 'evict', statements: granted.ofFunction('taintward-evict'), role: 'taintward-evict' },
  ];
}

/** Reports whether these statements allow to assume a role in an account of that organization; `undefined`: of none. */
const assumes = (
  { statements, role }: Pick<ReturnType<typeof assuming>[number], 'statements' | 'role'>,
  organization: string | undefined,
) =>
  allows(statements, [], {
    action: 'sts:AssumeRole',
    resource: `arn:aws:iam::210987654321:role/${role}`,
    context: organization === undefined ? {} : { 'aws:ResourceOrgID': [organization] },
  });

describe('with a configured organization', () => {
  const all = assuming(new Granted(synthesized({ 'taintward:organization': OURS })));

  test('allows a role of another account of the organization', () => {
    for (const each of all) assert.equal(assumes(each, OURS), true, each.who);
  });

  test('denies a role of another organization, regardless of its name', () => {
    for (const each of all) assert.equal(assumes(each, 'o-zzzzzzzzzz'), false, each.who);
  });

  test('denies a role of an account without an organization', () => {
    for (const each of all) assert.equal(assumes(each, undefined), false, each.who);
  });
});

test("decides by the role's name without an organization, because the account may be in none", () => {
  for (const statement of assuming(new Granted(synthesized()))) {
    assert.equal(assumes(statement, undefined), true, statement.who);
  }
});
