import assert from 'node:assert/strict';
import { globSync } from 'node:fs';
import { describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { AwsClients } from '#shared/access/aws-clients.ts';
import { textOf } from '../entry-constant.ts';

const role = { arn: 'arn:aws:iam::210987654321:role/taintward-access', externalId: 'sesame' };
const region = 'eu-west-1';

describe('an EKS client', () => {
  const own = { kind: 'eks', clusterName: 'prod', region } as const;
  const assuming = { ...own, role };

  test('is reused for the same region and role', () => {
    const aws = new AwsClients();
    assert.equal(aws.eks(assuming), aws.eks({ ...assuming, role: { ...role } }));
    assert.equal(aws.eks(own), aws.eks({ ...own, clusterName: 'another' }));
  });

  test('is not shared between roles, external IDs, or regions, and as a role not between clusters', () => {
    const aws = new AwsClients();
    const others = [
      aws.eks(own),
      aws.eks(assuming),
      aws.eks({ ...own, role: { arn: role.arn } }),
      aws.eks({ ...own, role: { ...role, externalId: 'another' } }),
      aws.eks({ ...own, role: { ...role, arn: `${role.arn}-2` } }),
      aws.eks({ ...assuming, region: 'eu-west-2' }),
      aws.eks({ ...assuming, clusterName: 'another' }),
    ];
    assert.equal(new Set(others).size, others.length);
  });
});

test('creates one Secrets Manager client per region', () => {
  const aws = new AwsClients();
  assert.equal(aws.secrets(region), aws.secrets(region));
  assert.notEqual(aws.secrets(region), aws.secrets('eu-west-2'));
});

test('each client is made with settings that limit its calls', () => {
  const unlimited = /new (?:SQSClient\((?!SQS_)|\w+Client\((?!.*(?:SETTINGS|#options)))/;
  const files = globSync('{functions,shared}/**/*.ts', {
    cwd: fileURLToPath(new URL('../../..', import.meta.url)),
  });
  assert.deepEqual(
    files.filter((path) => unlimited.test(textOf(path))),
    [],
  );
});
