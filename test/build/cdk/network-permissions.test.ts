import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { ACCOUNT, Granted, REGION } from './permissions/granted.ts';
import { allows, type IamRequest } from './permissions/policy.ts';
import { resourcesOf, resourceWith } from './stack/resources.ts';
import { synthesized } from './stack/synthesized.ts';

const EVICT = 'taintward-evict';
const template = synthesized({
  'taintward:vpcId': 'vpc-0123456789abcdef0',
  'taintward:subnetIds': 'subnet-0123456789abcdef0',
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
/** What a call says of whence it comes that code within the function makes. */
const FROM_CODE = {
  'lambda:SourceFunctionArn': [`arn:aws:lambda:${REGION}:${ACCOUNT}:function:${EVICT}`],
};
const allowed = (each: IamRequest) => allows(evict, [], each);

describe('in a VPC', () => {
  test('Lambda may do as evict what it takes to put the function there', () => {
    assert.deepEqual(
      requests({}).filter((each) => !allowed(each)),
      [],
    );
  });

  test('the code of evict may do none of it', () => {
    assert.deepEqual(requests(FROM_CODE).filter(allowed), []);
    const detach = { action: 'ec2:DetachNetworkInterface', resource: '*', context: FROM_CODE };
    assert.equal(allowed(detach), false);
  });

  test('the code of evict keeps its other permissions', () => {
    const [{ arn } = { arn: '' }] = new Granted(template)
      .sources()
      .filter(({ functionName }) => functionName === EVICT);
    const context = { ...FROM_CODE, 'aws:SecureTransport': ['true'] };
    assert.equal(allowed({ action: 'sqs:SendMessage', resource: arn, context }), true);
  });

  test('nothing else is allowed of EC2, and no policy of AWS is attached', () => {
    const ec2 = evict
      .filter(({ Effect }) => Effect === 'Allow')
      .flatMap(({ Action }) => Action)
      .filter((action) => action.startsWith('ec2:'));
    assert.deepEqual(ec2.toSorted(), Object.keys(OF_LAMBDA).toSorted());
    for (const [id, role] of resourcesOf(template, 'AWS::IAM::Role')) {
      assert.equal(role['ManagedPolicyArns'], undefined, id);
    }
  });

  test('the function is made after its permissions, and removed before them', () => {
    const { id } = resourceWith(template, 'AWS::Lambda::Function', 'FunctionName', EVICT);
    const { Resources } = template.toJSON() as {
      Resources: Record<string, { Type: string; DependsOn?: readonly string[] }>;
    };
    const awaited = Resources[id]?.DependsOn ?? [];
    assert.ok(awaited.some((each) => Resources[each]?.Type === 'AWS::IAM::Policy'));
  });
});

test('outside of a VPC no function has any permission of EC2', () => {
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
