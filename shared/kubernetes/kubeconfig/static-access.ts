import { defined } from '#shared/defined.ts';
import type { RequestAccess } from '../http/connection.ts';
import { KubeconfigError, proxyOf, type ResolvedContext, serverUrl } from './kubeconfig-file.ts';
import { authorizationOf, impersonationOf } from './own-credentials.ts';

/** Fields that are allowed where the kubeconfig has no files beside it, and no programs can run. */
const CLUSTER_FIELDS = new Set([
  'server',
  'certificate-authority-data',
  'tls-server-name',
  'insecure-skip-tls-verify',
  'proxy-url',
  // These fields don't affect how the server is reached.
  'disable-compression',
  'extensions',
]);
const USER_FIELDS = new Set([
  'token',
  'client-certificate-data',
  'client-key-data',
  'as',
  'as-uid',
  'as-groups',
  'as-user-extra',
  'extensions',
]);

/** By the kubeconfig's own token or client certificate, and CA data. Throws `KubeconfigError` for anything else. */
export function staticAccess(name: string, context: ResolvedContext): RequestAccess {
  const { cluster, user } = context;
  if (user.exec) {
    throw new KubeconfigError(
      `Context "${name}" gets its credentials from the plugin ${nameOf(user.exec.command)}, which cannot run here: put a token or a client certificate into the kubeconfig.`,
    );
  }
  refuseOthers(name, cluster, CLUSTER_FIELDS);
  refuseOthers(name, user, USER_FIELDS);
  const cert = decoded(name, user, 'client-certificate-data');
  const key = decoded(name, user, 'client-key-data');
  const ca = decoded(name, cluster, 'certificate-authority-data');
  if (!user.token && !(cert && key)) {
    throw new KubeconfigError(
      `Context "${name}" holds no credentials: put a token, or client-certificate-data and client-key-data, into the kubeconfig.`,
    );
  }
  const proxy = proxyOf(name, context);
  const servername = cluster['tls-server-name'];
  return {
    server: serverUrl(name, context),
    headers: { ...impersonationOf(user), ...authorizationOf(user) },
    ...(cert && key ? { cert, key } : {}),
    ...defined({ proxy }),
    ...(ca ? { ca } : {}),
    ...(servername ? { servername } : {}),
    ...(cluster['insecure-skip-tls-verify'] ? { rejectUnauthorized: false } : {}),
  };
}

/** Returns a command without its arguments, which may contain a secret. */
const nameOf = (command: string): string => command.trim().split(/\s/, 1)[0] ?? '';

/** Throws `KubeconfigError`: ignored silently, a field would mean another user or another route. */
function refuseOthers(name: string, fields: object, known: ReadonlySet<string>): void {
  const [other] = Object.entries(fields).find(([field, value]) => value && !known.has(field)) ?? [];
  if (other === undefined) return;
  throw new KubeconfigError(
    `Context "${name}" uses ${other}, which cannot work here: use a token or client-certificate-data, and certificate-authority-data.`,
  );
}

function decoded(name: string, fields: Readonly<Record<string, unknown>>, field: string): string | undefined {
  const value = fields[field];
  if (value === undefined) return undefined;
  const text = typeof value === 'string' ? Buffer.from(value, 'base64').toString() : '';
  if (text.includes('-----BEGIN ')) return text;
  throw new KubeconfigError(
    `The ${field} of context "${name}" is not a PEM text in base64: copy it from a kubeconfig that works.`,
  );
}
