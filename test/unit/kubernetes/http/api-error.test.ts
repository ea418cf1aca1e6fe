import assert from 'node:assert/strict';
import { test } from 'node:test';
import { reasonOf } from '#shared/kubernetes/http/api-error.ts';

/** Errors of a chain of certificates (Node's documentation of TLS, except those of revocation lists), DNS, and TLS. */
const CODES = `
  UNABLE_TO_GET_ISSUER_CERT UNABLE_TO_DECRYPT_CERT_SIGNATURE UNABLE_TO_DECODE_ISSUER_PUBLIC_KEY CERT_SIGNATURE_FAILURE
  CERT_NOT_YET_VALID CERT_HAS_EXPIRED ERROR_IN_CERT_NOT_BEFORE_FIELD ERROR_IN_CERT_NOT_AFTER_FIELD
  DEPTH_ZERO_SELF_SIGNED_CERT SELF_SIGNED_CERT_IN_CHAIN UNABLE_TO_GET_ISSUER_CERT_LOCALLY UNABLE_TO_VERIFY_LEAF_SIGNATURE
  CERT_CHAIN_TOO_LONG CERT_REVOKED INVALID_CA PATH_LENGTH_EXCEEDED INVALID_PURPOSE CERT_UNTRUSTED CERT_REJECTED
  HOSTNAME_MISMATCH ERR_TLS_CERT_ALTNAME_INVALID UNSPECIFIED
  ESERVFAIL EREFUSED ENOTFOUND ETIMEOUT EAI_AGAIN EAI_FAIL
  ERR_OSSL_BAD_DECRYPT ERR_OSSL_UNSUPPORTED ERR_OSSL_PEM_NO_START_LINE ERR_OSSL_X509_KEY_VALUES_MISMATCH
  ERR_OSSL_ASN1_HEADER_TOO_LONG ERR_SSL_EE_KEY_TOO_SMALL ERR_SSL_CA_MD_TOO_WEAK
  ERR_SSL_WRONG_VERSION_NUMBER ERR_SSL_PACKET_LENGTH_TOO_LONG ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED
  ERR_SSL_TLSV1_ALERT_UNKNOWN_CA ERR_SSL_SSLV3_ALERT_BAD_CERTIFICATE ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION
  ERR_SSL_SSLV3_ALERT_HANDSHAKE_FAILURE ERR_SSL_TLSV1_UNRECOGNIZED_NAME
`;

for (const code of CODES.trim().split(/\s+/))
  test(`${code} has a reason and a remedy`, () => {
    const reason = reasonOf(Object.assign(new Error(code), { code }));
    assert.match(reason, /^(its?|the) [^;]+; [a-z][^;]+ \([A-Z0-9_]+\)$/);
    assert.ok(reason.endsWith(` (${code})`));
  });

test('codes of servers, clients, and handshakes have different reasons', () => {
  const reasonFor = (code: string) => reasonOf(Object.assign(new Error(code), { code }));
  assert.match(reasonFor('ERR_SSL_TLSV1_ALERT_UNKNOWN_CA'), /rejected the client certificate/);
  assert.match(reasonFor('ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION'), /handshake failed; check TLS versions/);
  assert.match(reasonFor('ERR_OSSL_BAD_DECRYPT'), /the client key is encrypted/);
  assert.match(reasonFor('INVALID_PURPOSE'), /not fit for a server/);
  assert.equal(reasonFor('EWHATEVER'), 'EWHATEVER');
  assert.equal(reasonOf(new Error('sesame')), 'the connection broke');
});
