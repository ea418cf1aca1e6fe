import { generate } from 'selfsigned';

/** A server's key and its certificate, both PEM. */
export interface Certificate {
  readonly key: string;
  readonly certificate: string;
}

/** The key is new at every start, so the validity says nothing: any clock is to find it valid. */
const VALID_FROM = new Date(Date.UTC(2020, 0, 1));
const VALID_TO = new Date(Date.UTC(9999, 11, 31));

/**
 * A self-signed certificate for 127.0.0.1 and localhost, with a new key (ECDSA P-256): kubectl sends a token over
 * TLS only.
 */
export async function loopbackCertificate(): Promise<Certificate> {
  const { private: key, cert: certificate } = await generate([{ name: 'commonName', value: 'simulated' }], {
    keyType: 'ec',
    curve: 'P-256',
    algorithm: 'sha256',
    notBeforeDate: VALID_FROM,
    notAfterDate: VALID_TO,
    extensions: [
      {
        name: 'subjectAltName',
        altNames: [
          { type: 7, ip: '127.0.0.1' },
          { type: 2, value: 'localhost' },
        ],
      },
    ],
  });
  return { key, certificate };
}
