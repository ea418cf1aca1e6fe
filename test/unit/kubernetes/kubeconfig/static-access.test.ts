import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  KubeconfigError,
  mergeKubeconfigs,
  parseKubeconfig,
  resolveContext,
} from '#shared/kubernetes/kubeconfig/kubeconfig-file.ts';
import { staticAccess } from '#shared/kubernetes/kubeconfig/static-access.ts';

const base64 = (text: string): string => Buffer.from(text).toString('base64');
const CERTIFICATE = '-----BEGIN CERTIFICATE-----\nsesame\n-----END CERTIFICATE-----\n';
const KEY = '-----BEGIN PRIVATE KEY-----\nsesame\n-----END PRIVATE KEY-----\n';

function accessOf(user: object, cluster: object = {}) {
  const config = {
    clusters: [{ name: 'c', cluster: { server: 'https://c.example:6443', ...cluster } }],
    users: [{ name: 'u', user }],
    contexts: [{ name: 'prod', context: { cluster: 'c', user: 'u' } }],
  };
  const merged = mergeKubeconfigs('x', [parseKubeconfig(JSON.stringify(config), 'x')]);
  return staticAccess('prod', resolveContext(merged, 'prod'));
}

function refused(message: RegExp, user: object, cluster: object = {}): void {
  assert.throws(
    () => accessOf(user, cluster),
    (error: unknown) => {
      assert.ok(error instanceof KubeconfigError, String(error));
      assert.match(error.message, message);
      assert.match(error.message, /^[^\n]*"prod"[^\n]*: [^\n]*\.$/);
      assert.doesNotMatch(error.message, /sesame/);
      return true;
    },
  );
}

const TOKEN = { token: 't' };

for (const [what, user, cluster, access] of [
  [
    'a token as bearer token and CA data as the only CA',
    { token: 'sesame\n' },
    { 'certificate-authority-data': base64(CERTIFICATE) },
    { headers: { Authorization: 'Bearer sesame' }, ca: CERTIFICATE },
  ],
  [
    'a client certificate with its key',
    { 'client-certificate-data': base64(CERTIFICATE), 'client-key-data': base64(KEY) },
    {},
    { headers: {}, cert: CERTIFICATE, key: KEY },
  ],
  [
    'the TLS server name, disabled verification, and the proxy',
    TOKEN,
    {
      'tls-server-name': 'api.internal',
      'insecure-skip-tls-verify': true,
      'proxy-url': 'http://proxy.example:3128',
    },
    {
      headers: { Authorization: 'Bearer t' },
      servername: 'api.internal',
      rejectUnauthorized: false,
      proxy: new URL('http://proxy.example:3128'),
    },
  ],
  [
    'verification by default',
    TOKEN,
    { 'insecure-skip-tls-verify': false },
    { headers: { Authorization: 'Bearer t' } },
  ],
] as const)
  test(`uses ${what}`, () => {
    assert.deepEqual(accessOf(user, cluster), { server: new URL('https://c.example:6443'), ...access });
  });

test('rejects a credentials plugin by name', () => {
  refused(/the plugin aws, which cannot run here/, { exec: { command: 'aws', args: ['sesame'] } });
});

test('rejects access that needs a file or another method', () => {
  for (const field of ['client-certificate', 'client-key', 'tokenFile', 'username', 'auth-provider']) {
    refused(new RegExp(`uses ${field},`), { ...TOKEN, [field]: 'sesame' });
  }
  for (const field of ['certificate-authority', 'tls-versions']) {
    refused(new RegExp(`uses ${field},`), TOKEN, { [field]: 'sesame' });
  }
});

test('rejects missing or incomplete credentials', () => {
  const certificate = { 'client-certificate-data': base64(CERTIFICATE) };
  refused(/holds no credentials/, {});
  refused(/holds no credentials/, certificate);
  refused(/client-key-data of context "prod" is not a PEM text in base64/, {
    ...certificate,
    'client-key-data': 'sesame',
  });
  const ca = { 'certificate-authority-data': 'sesame' };
  refused(/certificate-authority-data of context "prod" is not a PEM/, TOKEN, ca);
});

test('rejects a server and a proxy that are not URLs', () => {
  refused(/is not an http or https URL/, TOKEN, { server: 'sesame' });
  refused(/^The proxy-url of context "prod" is not an http/, TOKEN, { 'proxy-url': 'socks5://sesame' });
});
