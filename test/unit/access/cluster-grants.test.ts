import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type ClusterGrants, ungrantedAccess } from '#shared/access/cluster-grants.ts';
import type { Access, ByPart } from '#shared/state/registry.ts';

const secret = (name: string, { region = 'eu-west-1', account = '111122223333' } = {}) =>
  `arn:aws:secretsmanager:${region}:${account}:secret:${name}`;
const role = (name: string, account = '*') => `arn:aws:iam::${account}:role/${name}`;

const GRANTS: ClusterGrants = {
  both: [secret('taintward/*'), role('taintward-access*')],
  relay: [secret('taintward-relay/*'), role('taintward-relay*')],
  evict: [secret('exact-??????'), role('path/to/evict', '210987654321')],
};

const bySecret = (secretArn: ByPart<string>): Access => ({ kind: 'kubeconfig-secret', secretArn });
const byRole = (relay: string, evict: string): Access => ({
  kind: 'eks',
  clusterName: 'prod',
  region: 'us-east-1',
  role: { relay: { arn: relay }, evict: { arn: evict } },
});

test('accepts secrets and roles that match a pattern of their part, of both, or exactly', () => {
  const relay = role('taintward-relay-eu', '210987654321');
  for (const access of [
    bySecret(secret('taintward/a/b-AbCdEf')),
    bySecret({ relay: secret('taintward-relay/a-AbCdEf'), evict: secret('exact-AbCdEf') }),
    bySecret({ relay: secret('taintward-relay/a'), evict: secret('exact') }),
    byRole(relay, role('path/to/evict', '210987654321')),
    byRole(relay, role('taintward-access', '210987654321')),
    { kind: 'eks', clusterName: 'prod', region: 'eu-west-1' },
    { kind: 'agent', agent: 'edge-1' },
    { kind: 'local-context', context: 'kind' },
  ] as const)
    assert.equal(ungrantedAccess(access, GRANTS), undefined, JSON.stringify(access));
});

test('names the part, the ARN, its patterns, and the setting of a secret or role that matches none', () => {
  const fine = secret('taintward/a-AbCdEf');
  for (const [access, part, arn, setting] of [
    [bySecret(secret('mycorp/try-AbCdEf')), 'relays', 'mycorp/try', 'kubeconfigSecrets'],
    [bySecret({ relay: fine, evict: secret('taintward-relay/a') }), 'evict', 'taintward-relay/a', 'kube'],
    [bySecret({ relay: fine, evict: secret('exact/more') }), 'evict', 'exact/more', 'kubeconfigSecrets'],
    [bySecret({ relay: fine, evict: secret('exact-AbCdEf-GhIjKl') }), 'evict', 'exact-AbC', 'kubeconfig'],
    [bySecret(secret('taintward/a', { region: 'us-east-1' })), 'relays', 'us-east-1', 'kubeconfigSecrets'],
    [bySecret(secret('taintward/a', { account: '210987654321' })), 'relays', '2109', 'kubeconfigSecrets'],
    [byRole(role('taintward-relay', '1'), role('path/to/evict', '3')), 'evict', '3', 'clusterRoles'],
    [byRole(role('Taintward-relay', '1'), role('x', '3')), 'relays', 'Taintward-relay', 'clusterRoles'],
  ] as const) {
    const reason = ungrantedAccess(access, GRANTS) ?? assert.fail(JSON.stringify(access));
    assert.ok(reason.startsWith(`IAM does not let ${part} use arn:aws:`), reason);
    assert.ok(reason.includes(arn) && reason.includes(`taintward:${setting}`), reason);
    assert.ok(reason.includes(setting.includes('kube') ? secret('taintward/*') : role('taintward-access*')));
    assert.equal(reason.includes(':iam:'), setting.includes('Roles'), 'only the patterns of its service');
  }
});
