import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { AwsClients } from '#shared/access/aws-clients.ts';

const role = { arn: 'arn:aws:iam::210987654321:role/taintward-access', externalId: 'sesame' };
const region = 'eu-west-1';

describe('an EKS client', () => {
  test('is reused for the same region and role', () => {
    const aws = new AwsClients();
    assert.equal(aws.eks({ region, role }), aws.eks({ region, role: { ...role } }));
    assert.equal(aws.eks({ region }), aws.eks({ region }));
  });

  test('is not shared between roles, external IDs, or regions', () => {
    const aws = new AwsClients();
    const others = [
      aws.eks({ region }),
      aws.eks({ region, role }),
      aws.eks({ region, role: { arn: role.arn } }),
      aws.eks({ region, role: { ...role, externalId: 'another' } }),
      aws.eks({ region, role: { ...role, arn: `${role.arn}-2` } }),
      aws.eks({ region: 'eu-west-2', role }),
    ];
    assert.equal(new Set(others).size, others.length);
  });
});

test('creates one Secrets Manager client per region', () => {
  const aws = new AwsClients();
  assert.equal(aws.secrets(region), aws.secrets(region));
  assert.notEqual(aws.secrets(region), aws.secrets('eu-west-2'));
});
