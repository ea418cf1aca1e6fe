import { readFileSync } from 'node:fs';
import { Age } from '#shared/time/age.ts';
import { systemClock } from '#shared/time/clock.ts';
import type { RequestAccess } from '../http/connection.ts';
import type { KubeconfigCluster, KubeconfigUser } from './kubeconfig-file.ts';

/** Everything that a request needs, except the route to the server. */
export type RequestCredentials = Omit<RequestAccess, 'server' | 'proxy'>;

/** How long the contents of files are cached. client-go caches tokens, which rotate, for the same time. */
const FRESH_MS = 60_000;

/**
 * Returns a getter of the current credentials of a cluster and a user: tokens, client certificates, a name and
 * password, and the user to impersonate. The kubeconfig contains them, or names their files. Files are reread once a
 * minute, and read errors are thrown unchanged.
 */
export function ownCredentials(cluster: KubeconfigCluster, user: KubeconfigUser): () => RequestCredentials {
  let read: { readonly age: Age; readonly credentials: RequestCredentials } | undefined;
  return () => {
    if (read === undefined || read.age.atMostMs > FRESH_MS) {
      const age = new Age(systemClock);
      read = { age, credentials: { ...tlsOf(cluster, user), headers: headersOf(user) } };
    }
    return read.credentials;
  };
}

function tlsOf(cluster: KubeconfigCluster, user: KubeconfigUser): Omit<RequestCredentials, 'headers'> {
  const ca = pem(cluster, 'certificate-authority');
  const cert = pem(user, 'client-certificate');
  const key = pem(user, 'client-key');
  const servername = textOf(cluster['tls-server-name']);
  return {
    ...(ca ? { ca } : {}),
    ...(cert ? { cert } : {}),
    ...(key ? { key } : {}),
    ...(servername ? { servername } : {}),
    ...(cluster['insecure-skip-tls-verify'] === true ? { rejectUnauthorized: false } : {}),
  };
}

function headersOf(user: KubeconfigUser): Readonly<Record<string, string>> {
  const token = user.tokenFile ? readFileSync(user.tokenFile, 'utf8') : user.token;
  const name = textOf(user['username']);
  const as = textOf(user['as']);
  const basic = () => Buffer.from(`${name}:${textOf(user['password']) ?? ''}`).toString('base64');
  return {
    ...(as ? { 'Impersonate-User': as.trim() } : {}),
    ...(token ? { Authorization: `Bearer ${token.trim()}` } : {}),
    ...(name ? { Authorization: `Basic ${basic()}` } : {}),
  };
}

/** Returns the contents of a file, or else of the field with the same text in base64. */
function pem(fields: Readonly<Record<string, unknown>>, field: string): Buffer | undefined {
  const file = textOf(fields[field]);
  if (file) return readFileSync(file);
  const data = textOf(fields[`${field}-data`]);
  return data ? Buffer.from(data, 'base64') : undefined;
}

const textOf = (value: unknown): string | undefined =>
  typeof value === 'string' && value !== '' ? value : undefined;
