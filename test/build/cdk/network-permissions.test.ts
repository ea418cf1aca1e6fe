import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { ACCOUNT, Granted, REGION } from './permissions/granted.ts';
import { allows, type IamRequest } from './permissions/policy.ts';
import { resourcesOf, resourceWith } from './stack/resources.ts';
import { synthesized } from './stack/synthesized.ts';

const EVICT = 'taintward-evict';
const template = synthesized({
  'taintward:vpcId': 'vpc-0123456789abcdef0',
  'taintward:subnetIds': 'subnet-0123456789abcdef0,subnet-0123456789abcdef1',
});
const evict = new Granted(template).ofFunction(EVICT);

/** Lambda Developer Guide, "Giving Lambda functions access to resources in an Amazon VPC", Required IAM permissions. */
const OF_LAMBDA: Readonly<Record<string, string>> = {
  'ec2:CreateNetworkInterface': `arn:aws:ec2:${REGION}:${ACCOUNT}:network-interface/*`,
  'ec2:DescribeNetworkInterfaces': '*',
  'ec2:DescribeSubnets': '*',
  'ec2:DeleteNetworkInterface': `arn:aws:ec2:${REGION}:${ACCOUNT}:*/*`,
  'ec2:AssignPrivateIpAddresses': `arn:aws:ec2:${REGION}:${ACCOUNT}:network-interface/eni-0`,
  'ec2:UnassignPrivateIpAddresses': `arn:aws:ec2:${REGION}:${ACCOUNT}:network-interface/eni-0`,
};
const requests = (context: IamRequest['context']): readonly IamRequest[] =>
  Object.entries(OF_LAMBDA).map(([action, resource]) => ({ action, resource, context }));
/** The context of a call that code within the function makes. */
const FROM_CODE = {
  'lambda:SourceFunctionArn': [`arn:aws:lambda:${REGION}:${ACCOUNT}:function:${EVICT}`],
};
const allowed = (each: IamRequest) => allows(evict, [], each);

describe('in a VPC', () => {
  test('lets Lambda, with the role of evict, attach the function to the VPC', () => {
    assert.deepEqual(
      requests({}).filter((each) => !allowed(each)),
      [],
    );
  });

  test('denies the code of evict all of it', () => {
    assert.deepEqual(requests(FROM_CODE).filter(allowed), []);
    const detach = { action: 'ec2:DetachNetworkInterface', resource: '*', context: FROM_CODE };
    assert.equal(allowed(detach), false);
  });

  test("keeps the other permissions of evict's code", () => {
    const [{ arn } = { arn: '' }] = new Granted(template)
      .sources()
      .filter(({ functionName }) => functionName === EVICT);
    const context = { ...FROM_CODE, 'aws:SecureTransport': ['true'] };
    assert.equal(allowed({ action: 'sqs:SendMessage', resource: arn, context }), true);
  });

  test('allows no other EC2 action, and attaches no AWS managed policy', () => {
    const ec2 = evict
      .filter(({ Effect }) => Effect === 'Allow')
      .flatMap(({ Action }) => Action)
      .filter((action) => action.startsWith('ec2:'));
    assert.deepEqual(ec2.toSorted(), Object.keys(OF_LAMBDA).toSorted());
    for (const [id, role] of resourcesOf(template, 'AWS::IAM::Role')) {
      assert.equal(role['ManagedPolicyArns'], undefined, id);
    }
  });

  test('creates the function after its permissions, and removes it before them', () => {
    const { id } = resourceWith(template, 'AWS::Lambda::Function', 'FunctionName', EVICT);
    const { Resources } = template.toJSON() as {
      Resources: Record<string, { Type: string; DependsOn?: readonly string[] }>;
    };
    const awaited = Resources[id]?.DependsOn ?? [];
    assert.ok(awaited.some((each) => Resources[each]?.Type === 'AWS::IAM::Policy'));
  });
});

test('gives functions outside of a VPC no EC2 permissions', () => {
  const granted = new Granted(synthesized());
  for (const name of ['node-delta', 'pod-delta', 'evict', 'expiry', 'heartbeat']) {
    const actions = granted.ofFunction(`taintward-${name}`).flatMap(({ Action }) => Action);
    assert.deepEqual(
      actions.filter((action) => action.startsWith('ec2:')),
      [],
      name,
    );
  }
});
