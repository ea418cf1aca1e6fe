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

test('uses a token as bearer token and CA data as the only CA', () => {
  const access = accessOf({ token: 'sesame\n' }, { 'certificate-authority-data': base64(CERTIFICATE) });
  assert.deepEqual(access, {
    server: new URL('https://c.example:6443'),
    headers: { Authorization: 'Bearer sesame' },
    ca: CERTIFICATE,
  });
});

test('uses a client certificate with its key', () => {
  const user = { 'client-certificate-data': base64(CERTIFICATE), 'client-key-data': base64(KEY) };
  const { headers, cert, key } = accessOf(user);
  assert.deepEqual({ headers, cert, key }, { headers: {}, cert: CERTIFICATE, key: KEY });
});

test('reads the TLS server name and disabled verification from the kubeconfig', () => {
  const { servername, rejectUnauthorized } = accessOf(
    { token: 't' },
    { 'tls-server-name': 'api.internal', 'insecure-skip-tls-verify': true },
  );
  assert.deepEqual(
    { servername, rejectUnauthorized },
    { servername: 'api.internal', rejectUnauthorized: false },
  );
  assert.equal(
    'rejectUnauthorized' in accessOf({ token: 't' }, { 'insecure-skip-tls-verify': false }),
    false,
  );
});

test('uses the proxy of the cluster', () => {
  const { proxy } = accessOf({ token: 't' }, { 'proxy-url': 'http://proxy.example:3128' });
  assert.equal(proxy?.href, 'http://proxy.example:3128/');
  refused(
    /^The proxy-url of context "prod" is not an http/,
    { token: 't' },
    { 'proxy-url': 'socks5://sesame' },
  );
});

test('rejects a credentials plugin by name', () => {
  refused(/the plugin aws, which cannot run here/, { exec: { command: 'aws', args: ['sesame'] } });
});

test('rejects access that needs a file or another method', () => {
  for (const field of ['client-certificate', 'client-key', 'tokenFile', 'username', 'auth-provider']) {
    refused(new RegExp(`uses ${field},`), { token: 't', [field]: 'sesame' });
  }
  for (const field of ['certificate-authority', 'tls-versions']) {
    refused(new RegExp(`uses ${field},`), { token: 't' }, { [field]: 'sesame' });
  }
});

test('rejects missing or incomplete credentials', () => {
  refused(/holds no credentials/, {});
  refused(/holds no credentials/, { 'client-certificate-data': base64(CERTIFICATE) });
  refused(/client-key-data of context "prod" is not a PEM text in base64/, {
    'client-certificate-data': base64(CERTIFICATE),
    'client-key-data': 'sesame',
  });
  refused(
    /certificate-authority-data of context "prod" is not a PEM/,
    { token: 't' },
    {
      'certificate-authority-data': 'sesame',
    },
  );
});

test('rejects a server that is not a URL', () => {
  refused(/is not an http or https URL/, { token: 't' }, { server: 'sesame' });
});
