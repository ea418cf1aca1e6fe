import { describe, test } from 'node:test';
import { checked } from './synthesized.ts';

describe('cdk-nag finds nothing that is not acknowledged, with a reason,', () => {
  test('in the default deployment', () => checked());

  test('with a relay of your own', () => checked({ 'taintward:relay': 'external' }));

  test('for LocalStack', () => {
    checked({ 'taintward:endpoint': 'localstack', 'taintward:agents': { brought: { cluster: 'third' } } });
  });

  test('with static addresses, and with KMS keys of your own', () => {
    checked({
      'taintward:staticEgressIps': 'true',
      'taintward:secretKmsKeys':
        'arn:aws:kms:eu-west-1:123456789012:key/1234abcd-12ab-34cd-56ef-1234567890ab',
      'taintward:organization': 'o-a1b2c3d4e5',
    });
  });

  test('with agents of all kinds', () => {
    checked({
      'taintward:alarmEmail': 'ops@example.com',
      'taintward:agents': {
        pods: {
          cluster: 'prod',
          podIdentity: { clusterArns: 'arn:aws:eks:eu-west-1:123456789012:cluster/prod' },
        },
        account: {
          cluster: 'stage',
          irsa: { oidcProvider: 'arn:aws:iam::123456789012:oidc-provider/example.com' },
        },
        brought: { cluster: 'third' },
      },
    });
  });

  test('with a released image', () => {
    const digest = `sha256:${'0'.repeat(64)}`;
    checked({ 'taintward:relayImage': `ghcr.io/taintward/taintward@${digest}` });
    checked({
      'taintward:relayImage': `210987654321.dkr.ecr.us-east-1.amazonaws.com/taintward@${digest}`,
    });
  });

  test('with alarms by mail', () => checked({ 'taintward:alarmEmail': 'ops@example.com' }));

  test('in a VPC of your own, with narrower and wider permissions', () => {
    checked({
      'taintward:name': 'fleet-2',
      'taintward:vpcId': 'vpc-0123456789abcdef0',
      'taintward:subnetIds': 'subnet-0123456789abcdef0,subnet-0123456789abcdef1',
      'taintward:kubeconfigSecrets': 'prod/*,staging',
      'taintward:clusterRoles': 'arn:aws:iam::111122223333:role/evictor,arn:aws:iam::*:role/taintward-*',
    });
  });
});
