import { readFileSync } from 'node:fs';
import { defined } from '#shared/defined.ts';
import { Age } from '#shared/time/age.ts';
import { systemClock } from '#shared/time/clock.ts';
import type { RequestAccess } from '../http/connection.ts';
import { type KubeconfigCluster, KubeconfigError, type KubeconfigUser } from './kubeconfig-file.ts';

/** Everything that a request needs, except the route to the server. */
export type RequestCredentials = Omit<RequestAccess, 'server' | 'proxy'>;

/** How long the contents of files are cached. client-go caches tokens, which rotate, for the same time. */
const FRESH_MS = 60_000;

/**
 * Current credentials, in the kubeconfig or in files, which are reread once a minute. Read errors are thrown unchanged.
 */
export function ownCredentials(
  cluster: Partial<KubeconfigCluster>,
  user: Partial<KubeconfigUser>,
): () => RequestCredentials {
  const impersonation = impersonationOf(user);
  let read: { readonly age: Age; readonly credentials: RequestCredentials } | undefined;
  return () => {
    if (read === undefined || read.age.atMostMs > FRESH_MS) {
      const age = new Age(systemClock);
      read = {
        age,
        credentials: { ...tlsOf(cluster, user), headers: { ...impersonation, ...authorizationOf(user) } },
      };
    }
    return read.credentials;
  };
}

function tlsOf(
  cluster: Partial<KubeconfigCluster>,
  user: Partial<KubeconfigUser>,
): Omit<RequestCredentials, 'headers'> {
  const ca = pem(cluster['certificate-authority-data'], cluster['certificate-authority']);
  const cert = pem(user['client-certificate-data'], user['client-certificate']);
  const key = pem(user['client-key-data'], user['client-key']);
  const { 'tls-server-name': servername, 'insecure-skip-tls-verify': isInsecure } = cluster;
  return {
    ...defined({ ca, cert, key }),
    ...(servername ? { servername } : {}),
    ...(isInsecure ? { rejectUnauthorized: false } : {}),
  };
}

/** Returns the header with a user's token, or name and password. */
export function authorizationOf(user: Partial<KubeconfigUser>): RequestCredentials['headers'] {
  const { username, password = '' } = user;
  const token = tokenOf(user);
  const basic = () => Buffer.from(`${username}:${password}`).toString('base64');
  return {
    ...(token ? { Authorization: `Bearer ${token.trim()}` } : {}),
    ...(username ? { Authorization: `Basic ${basic()}` } : {}),
  };
}

/** Returns the token of a file, or the one in the kubeconfig. With both, the file may be missing, as in client-go. */
function tokenOf({ token, tokenFile }: Partial<KubeconfigUser>): string | undefined {
  if (!tokenFile) return token;
  try {
    return readFileSync(tokenFile, 'utf8');
  } catch (error) {
    if (token === undefined) throw error;
    return token;
  }
}

/** Throws `KubeconfigError` for groups, a UID, or extra fields without a user. */
export function impersonationOf({
  as,
  'as-uid': uid,
  'as-groups': groups = [],
  'as-user-extra': extra = {},
}: Partial<KubeconfigUser>): RequestCredentials['headers'] {
  if (!as) {
    if (!uid && groups.length === 0 && Object.keys(extra).length === 0) return {};
    throw new KubeconfigError(
      'The user impersonates a UID, groups, or extra fields, but no user: set "as", too.',
    );
  }
  return {
    'Impersonate-User': as.trim(),
    ...(uid ? { 'Impersonate-Uid': uid } : {}),
    ...(groups.length > 0 ? { 'Impersonate-Group': groups } : {}),
    ...Object.fromEntries(
      Object.entries(extra).map(([key, values]) => [`Impersonate-Extra-${headerName(key)}`, values]),
    ),
  };
}

/** Percent-encodes the characters that a header's name may not contain, as client-go does. */
const headerName = (key: string): string =>
  Array.from(Buffer.from(key), (byte) => {
    const character = String.fromCharCode(byte);
    return /[!#$&'*+.^_`|~\w-]/.test(character)
      ? character
      : `%${byte.toString(16).toUpperCase().padStart(2, '0')}`;
  }).join('');

function pem(data: string | undefined, file: string | undefined): Buffer | undefined {
  if (data) return Buffer.from(data, 'base64');
  return file ? readFileSync(file) : undefined;
}
