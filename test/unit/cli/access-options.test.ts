import assert from 'node:assert/strict';
import { resolve } from 'node:path';
import { test } from 'node:test';
import { type AccessOptions, parseAccess } from '#functions/cli/access-options.ts';
import { UsageError } from '#shared/operations/fleet/fleet.ts';

const ROLE_ARN = 'arn:aws-us-gov:iam::210987654321:role/teams/taintward-access';
const SECRET_ARN = 'arn:aws-cn:secretsmanager:cn-north-1:123456789012:secret:taintward/prod-AbCdEf';
const EKS: AccessOptions = { eks: 'prod', region: 'eu-west-1' };

test("reads an EKS cluster with the caller's identity, or with a role and an external ID", () => {
  const own = { kind: 'eks', clusterName: 'prod', region: 'eu-west-1' };
  assert.deepEqual(parseAccess(EKS), own);
  assert.deepEqual(parseAccess({ ...EKS, roleArn: ROLE_ARN }), { ...own, role: { arn: ROLE_ARN } });
  assert.deepEqual(parseAccess({ ...EKS, roleArn: ROLE_ARN, externalId: 'x' }), {
    ...own,
    role: { arn: ROLE_ARN, externalId: 'x' },
  });
});

test('reads separate roles or secrets for relay and evict', () => {
  const [relay, evict] = ['relay', 'evict'].map((part) => `arn:aws:iam::210987654321:role/taintward-${part}`);
  assert.ok(relay && evict);
  assert.deepEqual(parseAccess({ ...EKS, relayRoleArn: relay, evictRoleArn: evict, externalId: 'x' }), {
    kind: 'eks',
    clusterName: 'prod',
    region: 'eu-west-1',
    role: { relay: { arn: relay, externalId: 'x' }, evict: { arn: evict, externalId: 'x' } },
  });
  const secrets = { relay: SECRET_ARN, evict: SECRET_ARN.replace('prod', 'prod-evict') };
  assert.deepEqual(
    parseAccess({
      relayKubeconfigSecret: secrets.relay,
      evictKubeconfigSecret: secrets.evict,
      context: 'c',
    }),
    { kind: 'kubeconfig-secret', secretArn: secrets, context: 'c' },
  );
});

test('reads a context with a secret, or alone for a kubeconfig file with an absolute path', () => {
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

test('reads the ID of an agent', () => {
  assert.deepEqual(parseAccess({ agent: 'edge-1' }), { kind: 'agent', agent: 'edge-1' });
});

test('rejects contradictory flags in one sentence that names the flags', () => {
  const cases: [AccessOptions, RegExp][] = [
    [{}, /^Missing cluster access\. Specify --eks .*--kubeconfig-secret .*--context/],
    [{ region: 'eu-west-1' }, /^Missing cluster access/],
    [{ eks: 'prod' }, /^--eks requires --region/],
    [{ ...EKS, externalId: 'x' }, /^--external-id requires --role-arn/],
    [{ ...EKS, roleArn: 'admin' }, /^--role-arn is not the ARN of a role/],
    [{ ...EKS, relayRoleArn: ROLE_ARN }, /^--relay-role-arn requires --evict-role-arn\. /],
    [{ ...EKS, evictRoleArn: ROLE_ARN }, /^--evict-role-arn requires --relay-role-arn\. /],
    [
      { ...EKS, roleArn: ROLE_ARN, evictRoleArn: ROLE_ARN },
      /^--role-arn is mutually exclusive with --relay-role-arn and --evict-role-arn/,
    ],
    [{ ...EKS, relayRoleArn: ROLE_ARN, evictRoleArn: 'admin' }, /^--evict-role-arn is not the ARN of a role/],
    [
      { relayKubeconfigSecret: SECRET_ARN },
      /^--relay-kubeconfig-secret requires --evict-kubeconfig-secret\. /,
    ],
    [
      { relayKubeconfigSecret: 'prod', evictKubeconfigSecret: SECRET_ARN },
      /^--relay-kubeconfig-secret is not the ARN of a secret/,
    ],
    [{ ...EKS, context: 'c' }, /^--context and --eks are mutually exclusive/],
    [{ ...EKS, kubeconfigSecret: SECRET_ARN }, /^--kubeconfig-secret and --eks are mutually exclusive/],
    [{ kubeconfigSecret: 'prod' }, /^--kubeconfig-secret is not the ARN of a secret/],
    [
      { kubeconfigSecret: SECRET_ARN, kubeconfig: 'f' },
      /^--kubeconfig and --kubeconfig-secret are mutually exclusive/,
    ],
    [{ context: 'c', region: 'eu-west-1' }, /^--region and --context are mutually exclusive/],
    [{ kubeconfig: 'f' }, /^Missing cluster access/],
    [{ context: '' }, /^--context must not be empty/],
    [{ agent: 'edge-1', region: 'eu-west-1' }, /^--region and --agent are mutually exclusive/],
    [{ ...EKS, agent: 'edge-1' }, /^--agent and --eks are mutually exclusive/],
    [{ agent: 'Edge' }, /^--agent must be like edge-1/],
    [{ agent: 'edge-1', externalId: 'x' }, /^--external-id and --agent are mutually exclusive/],
    [{ context: 'c', externalId: 'x' }, /^--external-id and --context are mutually exclusive/],
    [
      { kubeconfigSecret: SECRET_ARN, externalId: 'x' },
      /^--external-id and --kubeconfig-secret are mutually exclusive/,
    ],
    [{ ...EKS, roleArn: ROLE_ARN, externalId: '' }, /^--external-id must not be empty/],
    [
      { relayKubeconfigSecret: SECRET_ARN, evictKubeconfigSecret: 'prod' },
      /^--evict-kubeconfig-secret is not the ARN of a secret/,
    ],
    [{ agent: '1-edge' }, /^--agent must be like edge-1/],
    [{ agent: 'a'.repeat(22) }, /^--agent must be like edge-1/],
    [{ eks: '', region: 'eu-west-1' }, /^--eks must not be empty/],
  ];
  for (const [options, expected] of cases) {
    assert.throws(
      () => parseAccess(options),
      (error: unknown) => {
        assert.ok(error instanceof UsageError);
        assert.match(error.message, expected);
        return true;
      },
      JSON.stringify(options),
    );
  }
});
