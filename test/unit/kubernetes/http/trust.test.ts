import assert from 'node:assert/strict';
import { once } from 'node:events';
import http2 from 'node:http2';
import https from 'node:https';
import { type AddressInfo, connect } from 'node:net';
import type { Duplex } from 'node:stream';
import { before, describe, type TestContext, test } from 'node:test';
import tls from 'node:tls';
import { type GenerateResult, generate } from 'selfsigned';
import { nodeName } from '#shared/eviction/identity.ts';
import type { RequestAccess } from '#shared/kubernetes/http/connection.ts';
import { RestApi } from '#shared/kubernetes/rest-api.ts';

const NODE = nodeName('n1');
const AUTHORITY = [
  { name: 'basicConstraints', cA: true, critical: true },
  { name: 'keyUsage', keyCertSign: true, critical: true },
];
const FOR_SERVERS = [
  { name: 'extKeyUsage', serverAuth: true },
  { name: 'subjectAltName', altNames: [{ type: 7, ip: '127.0.0.1' }] },
];

const authority = (name: string, issuer?: GenerateResult) =>
  generate([{ name: 'commonName', value: name }], {
    keySize: 2048,
    algorithm: 'sha256',
    extensions: AUTHORITY,
    ...(issuer ? { ca: { key: issuer.private, cert: issuer.cert } } : {}),
  } as Parameters<typeof generate>[1]);

const leaf = (issuer: GenerateResult, options: Parameters<typeof generate>[1] = {}) =>
  generate([{ name: 'commonName', value: 'api' }], {
    keySize: 2048,
    algorithm: 'sha256',
    extensions: FOR_SERVERS,
    ca: { key: issuer.private, cert: issuer.cert },
    ...options,
  } as Parameters<typeof generate>[1]);

/** Calls a TLS server with these certificates, and returns the name of the node that it sends, or the error's message. */
async function answerOf(
  t: TestContext,
  { cert, key }: { readonly cert: string; readonly key: string },
  access: Partial<RequestAccess>,
): Promise<string | undefined> {
  const body = JSON.stringify({ metadata: { name: 'n1' } });
  const server = https.createServer({ cert, key }, (_, response) => response.end(body));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = new URL(`https://127.0.0.1:${(server.address() as AddressInfo).port}`);
  const api = new RestApi({
    host: 'api',
    requestOptions: async () => ({ server: address, headers: {}, ...access }),
  });
  t.after(() => {
    api.close();
    server.close();
  });
  return api.getNode(NODE).then(
    (node) => node?.name,
    (error: Error) => error.message,
  );
}

/** An https proxy with these certificates, which tunnels every call. */
async function proxyWith(
  t: TestContext,
  keys: { readonly cert: string; readonly key: string },
): Promise<URL> {
  const open = new Set<Duplex>();
  const proxy = https.createServer(keys).on('connect', ({ url = '' }, outer: Duplex) => {
    const inner = connect(Number(url.split(':')[1]), '127.0.0.1');
    for (const socket of [outer, inner]) open.add(socket.on('error', () => undefined));
    outer.write('HTTP/1.1 200 Connected\r\n\r\n');
    outer.pipe(inner).pipe(outer);
  });
  proxy.listen(0, '127.0.0.1');
  await once(proxy, 'listening');
  t.after(() => {
    for (const socket of open) socket.destroy();
    proxy.close();
  });
  return new URL(`https://127.0.0.1:${(proxy.address() as AddressInfo).port}`);
}

describe('a server certificate', () => {
  let root: GenerateResult;
  let intermediate: GenerateResult;
  let served: GenerateResult;
  let keys: { readonly cert: string; readonly key: string };
  before(async () => {
    root = await authority('root');
    intermediate = await authority('cluster-ca', root);
    served = await leaf(intermediate);
    keys = { cert: served.cert, key: served.private };
  });

  test('is trusted if the CA data holds its issuer, which is no self-signed root', async (t) => {
    assert.equal(await answerOf(t, keys, { ca: intermediate.cert }), 'n1');
    const chain = { ...keys, cert: `${served.cert}\n${intermediate.cert}` };
    assert.equal(await answerOf(t, chain, { ca: Buffer.from(intermediate.cert) }), 'n1');
    assert.equal(await answerOf(t, chain, { ca: root.cert }), 'n1');
  });

  test('is trusted if the CA data holds it itself', async (t) => {
    assert.equal(await answerOf(t, keys, { ca: served.cert }), 'n1');
  });

  test("counts for an https proxy as for the server: by the cluster's CA data, and not if that is not to be verified", async (t) => {
    const proxy = await proxyWith(t, keys);
    assert.equal(await answerOf(t, keys, { proxy, ca: intermediate.cert }), 'n1');
    assert.equal(await answerOf(t, keys, { proxy, rejectUnauthorized: false }), 'n1');
    const [old, current] = [await authority('kubernetes'), await authority('kubernetes')];
    const { cert, private: key } = await leaf(current);
    const rotated = await proxyWith(t, { cert, key });
    assert.equal(
      await answerOf(t, { cert, key }, { proxy: rotated, ca: `${old.cert}\n${current.cert}` }),
      'n1',
    );
    assert.match(
      String(await answerOf(t, keys, { proxy: rotated, ca: intermediate.cert })),
      /at api: the proxy 127\.0\.0\.1:\d+ cannot be reached: its TLS certificate is not from the expected authority; /,
    );
  });

  test('is not trusted if the CA data holds another authority', async (t) => {
    const { cert: ca } = await authority('other');
    assert.match(
      String(await answerOf(t, keys, { ca })),
      /at api: its TLS certificate is not from the expected authority; give its CA certificate \(UNABLE_TO_/,
    );
  });

  test('is trusted if the CA data holds two authorities of one name, in any order', async (t) => {
    const [old, current] = [await authority('kubernetes'), await authority('kubernetes')];
    for (const issuer of [old, current]) {
      const { cert, private: key } = await leaf(issuer);
      assert.equal(await answerOf(t, { cert, key }, { ca: `${old.cert}\n${current.cert}` }), 'n1');
    }
    const { cert, private: key } = await leaf(await authority('kubernetes'));
    assert.match(
      String(await answerOf(t, { cert, key }, { ca: `${old.cert}\n${current.cert}` })),
      /not from the expected authority; .* \(CERT_SIGNATURE_FAILURE\)\.$/,
    );
  });

  for (const ca of ['sesame', '-----BEGIN CERTIFICATE-----\nYQ==\n-----END CERTIFICATE-----\n'])
    test(`is not blamed for CA data without a certificate: ${ca.slice(0, 6)}`, async (t) => {
      assert.equal(
        await answerOf(t, keys, { ca }),
        'Cannot get nodes n1 at api: its CA data holds no certificate in PEM form; give its CA certificate in certificate-authority-data, or a file of it in certificate-authority.',
      );
    });

  test('is judged by the day', async (t) => {
    const past = { notBeforeDate: new Date('2020-01-01'), notAfterDate: new Date('2020-02-01') };
    const future = { notBeforeDate: new Date('2120-01-01'), notAfterDate: new Date('2120-02-01') };
    for (const [options, reason] of [
      [past, 'its TLS certificate has expired; renew it (CERT_HAS_EXPIRED).'],
      [
        future,
        'its TLS certificate is not valid yet; check the clocks of this machine and its issuer (CERT_NOT_YET_VALID).',
      ],
    ] as const) {
      const { cert, private: key } = await leaf(intermediate, options);
      const message = await answerOf(t, { cert, key }, { ca: intermediate.cert });
      assert.equal(message, `Cannot get nodes n1 at api: ${reason}`);
    }
  });

  test("is judged by the system's and Node's authorities if there is no CA data", async (t) => {
    // The module keeps what it read, perhaps for another test.
    const path = `${import.meta.resolve('#shared/kubernetes/http/trust.ts')}?fresh`;
    const { secureContext }: typeof import('#shared/kubernetes/http/trust.ts') = await import(path);
    const made: (string | undefined)[][] = [];
    t.mock.method(tls, 'getCACertificates', (type: string) => [`${type} store`, 'both']);
    t.mock.method(tls, 'createSecureContext', ({ ca }: { ca?: string[] }) => made.push(ca ?? []));
    secureContext({});
    secureContext({});
    secureContext({ cert: 'cert', key: 'key' });
    secureContext({ rejectUnauthorized: false });
    const both = ['default store', 'both', 'system store'];
    assert.deepEqual(made, [both, both, []]);
  });
});

test('a server that requires a client certificate is quoted, also over HTTP/2', async (t) => {
  const issuer = await authority('cluster-ca');
  const { cert, private: key } = await leaf(issuer);
  const server = http2.createSecureServer({
    cert,
    key,
    ca: issuer.cert,
    requestCert: true,
    rejectUnauthorized: true,
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = new URL(`https://127.0.0.1:${(server.address() as AddressInfo).port}`);
  const api = new RestApi({
    host: 'api',
    requestOptions: async () => ({ server: address, headers: {}, ca: issuer.cert }),
  });
  t.after(() => {
    api.close();
    server.close();
  });
  await assert.rejects(api.getNode(NODE), {
    message:
      'Cannot get nodes n1 at api: it rejected the client certificate; give a current one that its CA signed (ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED).',
  });
});
