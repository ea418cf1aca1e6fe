import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { AwsClients } from '#shared/access/aws-clients.ts';

const role = { arn: 'arn:aws:iam::210987654321:role/taintward-access', externalId: 'sesame' };
const region = 'eu-west-1';

describe('a client of EKS', () => {
  test('is kept for a region and a role', () => {
    const aws = new AwsClients();
    assert.equal(aws.eks({ region, role }), aws.eks({ region, role: { ...role } }));
    assert.equal(aws.eks({ region }), aws.eks({ region }));
  });

  test('is never that of another role, external ID or region, as whom somebody else would be asked', () => {
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

test('a client of Secrets Manager is one for each region', () => {
  const aws = new AwsClients();
  assert.equal(aws.secrets(region), aws.secrets(region));
  assert.notEqual(aws.secrets(region), aws.secrets('eu-west-2'));
});
