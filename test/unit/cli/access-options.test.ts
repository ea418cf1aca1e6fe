import assert from 'node:assert/strict';
import { resolve } from 'node:path';
import { test } from 'node:test';
import { type AccessOptions, parseAccess } from '#functions/cli/access-options.ts';
import { CliError } from '#functions/cli/command.ts';

const ROLE_ARN = 'arn:aws:iam::210987654321:role/taintward-access';
const SECRET_ARN = 'arn:aws:secretsmanager:eu-west-1:123456789012:secret:taintward/prod-AbCdEf';
const EKS: AccessOptions = { eks: 'prod', region: 'eu-west-1' };

test('an EKS cluster is reached as oneself, or by a role and what it wants to hear', () => {
  const own = { kind: 'eks', clusterName: 'prod', region: 'eu-west-1' };
  assert.deepEqual(parseAccess(EKS), own);
  assert.deepEqual(parseAccess({ ...EKS, roleArn: ROLE_ARN }), { ...own, role: { arn: ROLE_ARN } });
  assert.deepEqual(parseAccess({ ...EKS, roleArn: ROLE_ARN, externalId: 'x' }), {
    ...own,
    role: { arn: ROLE_ARN, externalId: 'x' },
  });
});

test('a context stands beside a secret, or by itself for a kubeconfig file, whose path becomes absolute', () => {
  const secret = { kind: 'kubeconfig-secret', secretArn: SECRET_ARN };
  assert.deepEqual(parseAccess({ kubeconfigSecret: SECRET_ARN }), secret);
  assert.deepEqual(parseAccess({ kubeconfigSecret: SECRET_ARN, context: 'c' }), { ...secret, context: 'c' });
  assert.deepEqual(parseAccess({ context: 'c' }), { kind: 'local-context', context: 'c' });
  assert.deepEqual(parseAccess({ context: 'c', kubeconfig: 'dir/config' }), {
    kind: 'local-context',
    context: 'c',
    kubeconfig: resolve('dir/config'),
  });
});

test('flags that do not make one way are refused in one sentence that names them', () => {
  const cases: [AccessOptions, RegExp][] = [
    [{}, /^Say how the cluster is reached: --eks .*--kubeconfig-secret .*--context/],
    [{ region: 'eu-west-1' }, /^Say how/],
    [{ eks: 'prod' }, /^--eks needs --region/],
    [{ ...EKS, externalId: 'x' }, /^--external-id needs --role-arn/],
    [{ ...EKS, roleArn: 'admin' }, /^--role-arn is not the ARN of a role/],
    [{ ...EKS, context: 'c' }, /^--context cannot stand beside --eks/],
    [{ ...EKS, kubeconfigSecret: SECRET_ARN }, /^--kubeconfig-secret cannot stand beside --eks/],
    [{ kubeconfigSecret: 'prod' }, /^--kubeconfig-secret is not the ARN of a secret/],
    [
      { kubeconfigSecret: SECRET_ARN, kubeconfig: 'f' },
      /^--kubeconfig cannot stand beside --kubeconfig-secret/,
    ],
    [{ context: 'c', region: 'eu-west-1' }, /^--region cannot stand beside --context/],
    [{ kubeconfig: 'f' }, /^Say how/],
    [{ context: '' }, /^--context is empty/],
    [{ eks: '', region: 'eu-west-1' }, /^--eks is empty/],
  ];
  for (const [options, expected] of cases) {
    assert.throws(
      () => parseAccess(options),
      (error: unknown) => {
        assert.ok(error instanceof CliError);
        assert.match(error.message, expected);
        return true;
      },
      JSON.stringify(options),
    );
  }
});
