import { X509Certificate } from 'node:crypto';
import tls, { type SecureContext } from 'node:tls';
import { DialError, type RequestAccess } from './connection.ts';

const PEM_CERTIFICATE = /-----BEGIN ((?:X509 |TRUSTED )?CERTIFICATE)-----.*?-----END \1-----/gs;

let systemStore: string[] | undefined;
let withoutClient: SecureContext | undefined;

/**
 * Trusts as Go does: each certificate of the CA data by itself; without any, those of the system and of Node. Throws
 * `DialError` for CA data without a certificate.
 */
export function secureContext(access: Partial<RequestAccess>): SecureContext {
  const { ca, cert, key, rejectUnauthorized } = access;
  const create = (trusted?: string[]) =>
    tls.createSecureContext({ ca: trusted, cert, key, allowPartialTrustChain: true });
  if (rejectUnauthorized === false) return create();
  if (ca !== undefined) return create(certificatesOf(ca).map(String));
  // Reading the system's store takes 70 ms, and a context of it 40 ms.
  systemStore ??= [...new Set([...tls.getCACertificates('default'), ...tls.getCACertificates('system')])];
  if (cert !== undefined || key !== undefined) return create(systemStore);
  withoutClient ??= create(systemStore);
  return withoutClient;
}

/** Certificates of CA data that share a subject, as while a CA is rotated: OpenSSL tries only the first of a name. */
export function namesakes(ca: RequestAccess['ca']): readonly string[] {
  const bySubject = Map.groupBy(ca === undefined ? [] : certificatesOf(ca), ({ subject }) => subject);
  return [...bySubject.values()].filter(({ length }) => length > 1).flatMap((each) => each.map(String));
}

function certificatesOf(ca: NonNullable<RequestAccess['ca']>): X509Certificate[] {
  const blocks = [ca].flat().flatMap((text) => text.toString().match(PEM_CERTIFICATE) ?? []);
  const certificates = blocks.flatMap(parsed);
  if (certificates.length > 0) return certificates;
  throw new DialError(
    'its CA data holds no certificate in PEM form; give its CA certificate in certificate-authority-data, or a file of it in certificate-authority',
  );
}

function parsed(pem: string): X509Certificate[] {
  try {
    return [new X509Certificate(pem)];
  } catch {
    return [];
  }
}
