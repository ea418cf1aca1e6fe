import assert from 'node:assert/strict';
import http2 from 'node:http2';
import https from 'node:https';
import type { Server } from 'node:net';
import type { Duplex } from 'node:stream';
import { before, describe, type TestContext, test } from 'node:test';
import tls from 'node:tls';
import { type GenerateResult, generate } from 'selfsigned';
import type { RequestAccess } from '#shared/kubernetes/http/connection.ts';
import { NODE, node } from '../builders.ts';
import { clientOf, listening, tunnel } from '../scripted-server.ts';

const AUTHORITY = [
  { name: 'basicConstraints', cA: true, critical: true },
  { name: 'keyUsage', keyCertSign: true, critical: true },
];
const FOR_SERVERS = [
  { name: 'extKeyUsage', serverAuth: true },
  { name: 'subjectAltName', altNames: [{ type: 7, ip: '127.0.0.1' }] },
];

const made = (name: string, extensions: readonly object[], issuer?: GenerateResult, more: object = {}) =>
  generate([{ name: 'commonName', value: name }], {
    keySize: 2048,
    algorithm: 'sha256',
    extensions,
    ...(issuer ? { ca: { key: issuer.private, cert: issuer.cert } } : {}),
    ...more,
  } as Parameters<typeof generate>[1]);

const authority = (name: string, issuer?: GenerateResult) => made(name, AUTHORITY, issuer);
const leaf = (issuer: GenerateResult, more: object = {}) => made('api', FOR_SERVERS, issuer, more);

interface Keys {
  readonly cert: string;
  readonly key: string;
}

const keysOf = ({ cert, private: key }: GenerateResult): Keys => ({ cert, key });

/** Calls a server, and returns the name of the node that it sends, or the error's message. */
async function answerFrom(t: TestContext, server: Server, access: Partial<RequestAccess>): Promise<string> {
  const { host } = await listening(t, server);
  const address = new URL(`https://${host}`);
  const api = clientOf(t, () => ({ server: address, headers: {}, ...access }), { host: 'api' });
  return api.getNode(NODE).then(
    (found) => found?.name ?? '',
    (error: Error) => error.message,
  );
}

/** Calls a TLS server with these certificates. */
const answerOf = (t: TestContext, keys: Keys, access: Partial<RequestAccess>): Promise<string> =>
  answerFrom(
    t,
    https.createServer(keys, (_, response) => node(response, undefined as never)),
    access,
  );

/** An https proxy with these certificates, which tunnels every call. */
async function proxyWith(t: TestContext, keys: Keys): Promise<URL> {
  const proxy = https.createServer(keys).on('connect', ({ url = '' }, outer: Duplex) => {
    outer.write('HTTP/1.1 200 Connected\r\n\r\n');
    tunnel(outer, Number(url.split(':')[1]));
  });
  return new URL(`https://${(await listening(t, proxy)).host}`);
}

describe('a server certificate', () => {
  let root: GenerateResult;
  let intermediate: GenerateResult;
  let keys: Keys;
  before(async () => {
    root = await authority('root');
    intermediate = await authority('cluster-ca', root);
    keys = keysOf(await leaf(intermediate));
  });

  test('is trusted if the CA data holds its issuer, which is no self-signed root', async (t) => {
    assert.equal(await answerOf(t, keys, { ca: intermediate.cert }), 'n1');
    const chain = { ...keys, cert: `${keys.cert}\n${intermediate.cert}` };
    assert.equal(await answerOf(t, chain, { ca: Buffer.from(intermediate.cert) }), 'n1');
    assert.equal(await answerOf(t, chain, { ca: root.cert }), 'n1');
  });

  test('is trusted if the CA data holds it itself', async (t) => {
    assert.equal(await answerOf(t, keys, { ca: keys.cert }), 'n1');
  });

  test("counts for an https proxy as for the server: by the cluster's CA data, and not if that is not to be verified", async (t) => {
    const proxy = await proxyWith(t, keys);
    assert.equal(await answerOf(t, keys, { proxy, ca: intermediate.cert }), 'n1');
    assert.equal(await answerOf(t, keys, { proxy, rejectUnauthorized: false }), 'n1');
    const [old, current] = [await authority('kubernetes'), await authority('kubernetes')];
    const renewed = keysOf(await leaf(current));
    const rotated = await proxyWith(t, renewed);
    const ca = `${old.cert}\n${current.cert}`;
    assert.equal(await answerOf(t, renewed, { proxy: rotated, ca }), 'n1');
    assert.match(
      await answerOf(t, keys, { proxy: rotated, ca: intermediate.cert }),
      /at api: the proxy 127\.0\.0\.1:\d+ cannot be reached: its TLS certificate is not from the expected authority; /,
    );
  });

  test('is not trusted if the CA data holds another authority', async (t) => {
    const { cert: ca } = await authority('other');
    assert.match(
      await answerOf(t, keys, { ca }),
      /at api: its TLS certificate is not from the expected authority; give its CA certificate \(UNABLE_TO_/,
    );
  });

  test('is trusted if the CA data holds two authorities of one name, in any order', async (t) => {
    const [old, current] = [await authority('kubernetes'), await authority('kubernetes')];
    const ca = `${old.cert}\n${current.cert}`;
    const signedBy = async (issuer: GenerateResult) => answerOf(t, keysOf(await leaf(issuer)), { ca });
    for (const issuer of [old, current]) assert.equal(await signedBy(issuer), 'n1');
    assert.match(
      await signedBy(await authority('kubernetes')),
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
      const message = await answerOf(t, keysOf(await leaf(intermediate, options)), { ca: intermediate.cert });
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
  const keys = keysOf(await leaf(issuer));
  const options = { ...keys, ca: issuer.cert, requestCert: true, rejectUnauthorized: true };
  assert.equal(
    await answerFrom(t, http2.createSecureServer(options), { ca: issuer.cert }),
    'Cannot get nodes n1 at api: it rejected the client certificate; give a current one that its CA signed (ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED).',
  );
});
