import { accessSync, constants } from 'node:fs';
import type { RequestOptions } from 'node:https';
import { isIPv6 } from 'node:net';
import { defined } from '#shared/defined.ts';
import { durationText } from '#shared/time/duration.ts';
import type { Connection, RequestAccess } from '../http/connection.ts';
import { execPlugin, type PluginCredential, PluginOutputError } from './exec-plugin.ts';
import {
  type KubeconfigCluster,
  KubeconfigError,
  type KubeconfigUser,
  proxyOf,
  type ResolvedContext,
  readKubeconfig,
  resolveContext,
  serverUrl,
  systemErrorCode,
} from './kubeconfig-file.ts';
import { authorizationOf, ownCredentials, type RequestCredentials } from './own-credentials.ts';

const SERVICE_ACCOUNT = '/var/run/secrets/kubernetes.io/serviceaccount';
/** Timeout of a credentials plugin or an identity provider; a plugin that prompts would wait indefinitely. */
const CREDENTIALS_TIMEOUT_MS = 30_000;

export interface ContextOptions {
  /** Why a kubeconfig may not start a program for its credentials, as a sentence with the remediation; absent: it may. */
  readonly noPrograms?: string;
}

/** `kubeconfig`: a path; absent: kubectl's default. Obtains credentials when needed. Throws `KubeconfigError`. */
export function contextConnection(
  name: string,
  kubeconfig: string | undefined,
  { noPrograms }: ContextOptions = {},
): Connection {
  const resolve = () => {
    const found = resolveContext(readKubeconfig(kubeconfig), name);
    if (noPrograms !== undefined) refusePrograms(name, found, noPrograms);
    return found;
  };
  const context = resolve();
  const proxy = proxyOf(name, context);
  const way = { server: serverUrl(name, context), ...defined({ proxy }) };
  return credentialsConnection(way, `context "${name}"`, () => contextCredentials(name, resolve()));
}

/**
 * By the pod's service account, whose token rotates. `root` precedes the well-known paths. Throws `KubeconfigError`
 * outside a pod.
 */
export function inClusterConnection(root = ''): Connection {
  const { KUBERNETES_SERVICE_HOST: host, KUBERNETES_SERVICE_PORT: port } = process.env;
  if (!host || !port) {
    throw new KubeconfigError(
      'This process does not run in a Kubernetes pod (KUBERNETES_SERVICE_HOST is not set): use a kubeconfig.',
    );
  }
  const who = 'the service account of this pod';
  const [ca = '', tokenFile = ''] = ['ca.crt', 'token'].map((file) => `${root}${SERVICE_ACCOUNT}/${file}`);
  for (const file of [ca, tokenFile]) checkReadable(file, who);
  const server = new URL(`https://${isIPv6(host) ? `[${host}]` : host}:${port}`);
  const load = () => {
    const own = ownCredentials({ server: server.href, 'certificate-authority': ca }, { tokenFile });
    return async () => own();
  };
  return credentialsConnection({ server }, who, load);
}

type Way = Pick<RequestAccess, 'server' | 'proxy'>;

/** The signal ends a call that hangs. */
type Credentials = (signal: AbortSignal) => Promise<RequestCredentials>;

function contextCredentials(name: string, { cluster, user }: ResolvedContext): Credentials {
  for (const file of [
    cluster['certificate-authority'],
    user['client-certificate'],
    user['client-key'],
    user.token === undefined ? user.tokenFile : undefined,
  ]) {
    if (file !== undefined) checkReadable(file, `context "${name}"`);
  }
  if (user['auth-provider']) return providerCredentials(name, cluster, user);
  const own = ownCredentials(cluster, user);
  // We run plugins ourselves: client-node does not end a plugin that hangs.
  const plugin = user.exec && execPlugin(user.exec, cluster);
  return async (signal) => {
    const credentials = own();
    // As with kubectl, a plugin is not asked beside a token of the kubeconfig itself.
    if (!plugin || 'Authorization' in credentials.headers) return credentials;
    return withPlugin(credentials, await plugin(signal));
  };
}

/** By client-node, whose 868 modules take 36 MB and half a second: loaded only for identity providers. */
function providerCredentials(name: string, cluster: KubeconfigCluster, user: KubeconfigUser): Credentials {
  const loading = import('@kubernetes/client-node').then(({ KubeConfig }) => {
    const config = new KubeConfig();
    config.loadFromString(
      JSON.stringify({
        clusters: [{ name, cluster: clientCluster(cluster) }],
        users: [{ name, user }],
        contexts: [{ name, context: { cluster: name, user: name } }],
        'current-context': name,
      }),
    );
    return config;
  });
  // Callers receive the error when they await `loading`.
  void loading.catch(() => undefined);
  return async () => {
    const options: RequestOptions = {};
    await (await loading).applyToHTTPSOptions(options);
    return accessOf(options);
  };
}

/** Throws `KubeconfigError` if credentials come from a program. An `auth-provider` can name one, too (`cmd-path`). */
function refusePrograms(name: string, { user }: ResolvedContext, why: string): void {
  const field = ['exec', 'auth-provider'].find((each) => user[each]);
  if (field === undefined) return;
  throw new KubeconfigError(`Context "${name}" starts a program for its credentials (${field}): ${why}`);
}

function checkReadable(file: string, who: string): void {
  try {
    accessSync(file, constants.R_OK);
  } catch (error) {
    throw new KubeconfigError(
      `The file ${file} of ${who} cannot be read (${systemErrorCode(error)}): restore it.`,
    );
  }
}

/**
 * client-node rejects plain http with TLS verification, though there is nothing to verify. Proxies are handled
 * elsewhere.
 */
const clientCluster = ({ 'proxy-url': _, ...cluster }: KubeconfigCluster): object =>
  cluster.server.startsWith('http:') ? { ...cluster, 'insecure-skip-tls-verify': true } : cluster;

/**
 * `who` names the user in messages. `load` reads the sources, now (it throws `KubeconfigError`) and after each
 * rejection by the server.
 */
function credentialsConnection(way: Way, who: string, load: () => Credentials): Connection {
  const loaded = () => {
    try {
      return load();
    } catch (error) {
      throw explained(who, error);
    }
  };
  let credentials: Credentials | undefined = loaded();
  let underway: Promise<RequestAccess> | undefined;
  let last: { readonly carried: RequestCredentials; readonly access: RequestAccess } | undefined;

  const obtain = async (signal: AbortSignal): Promise<RequestAccess> => {
    try {
      credentials ??= load();
      const carried = await credentials(signal);
      // Reuse the object while the credentials are the same: then connection keys need not be computed again.
      if (last?.carried !== carried) last = { carried, access: { ...way, ...carried } };
      return last.access;
    } catch (error) {
      throw explained(who, error);
    }
  };

  return {
    host: way.server.host,
    async requestOptions() {
      // One call for all waiting requests.
      underway ??= inTime(obtain, who).finally(() => {
        underway = undefined;
      });
      return underway;
    },
    forgetCredentials() {
      credentials = undefined;
    },
  };
}

const withPlugin = (
  own: RequestCredentials,
  { token, clientCertificateData: cert, clientKeyData: key }: PluginCredential,
): RequestCredentials => ({
  ...own,
  headers: { ...own.headers, ...authorizationOf({ token }) },
  ...(cert && key ? { cert, key } : {}),
});

/** A call that hangs is aborted, so that the next request starts again. */
async function inTime<T>(obtain: (signal: AbortSignal) => Promise<T>, who: string): Promise<T> {
  const over = new AbortController();
  const { promise: tooLate, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => {
    const why = `no credentials came within ${durationText(CREDENTIALS_TIMEOUT_MS)}, their plugin may wait for an answer`;
    reject(new KubeconfigError(`For ${who} ${why}: log in by hand first.`));
    over.abort();
  }, CREDENTIALS_TIMEOUT_MS);
  try {
    return await Promise.race([obtain(over.signal), tooLate]);
  } finally {
    clearTimeout(timer);
  }
}

function accessOf({
  headers,
  auth,
  ca,
  cert,
  key,
  rejectUnauthorized,
  servername,
}: RequestOptions): RequestCredentials {
  const given = Object.entries(headers ?? {}).map(([name, value]) => [name, String(value).trim()] as const);
  return {
    headers: {
      ...Object.fromEntries(given),
      ...(auth ? { Authorization: `Basic ${Buffer.from(auth).toString('base64')}` } : {}),
    },
    ...defined({ ca, cert, key, rejectUnauthorized, servername }),
  };
}

function explained(who: string, error: unknown): KubeconfigError {
  if (error instanceof KubeconfigError) return error;
  const code = systemErrorCode(error);
  if (error instanceof Error && 'path' in error && 'syscall' in error) {
    return String(error.syscall).startsWith('spawn')
      ? new KubeconfigError(
          `The credentials plugin ${error.path} of ${who} cannot be started (${code}): install it, or put it on PATH.${'installHint' in error ? ` ${error.installHint}` : ''}`,
        )
      : new KubeconfigError(`The file ${error.path} of ${who} cannot be read (${code}): restore it.`);
  }
  if (error instanceof PluginOutputError) {
    return new KubeconfigError(`The credentials plugin of ${who} printed no credential: ${error.message}.`);
  }
  // The output of a plugin or an identity provider may contain a token, so it is not quoted.
  return new KubeconfigError(
    `The credentials plugin or login of ${who} failed: run "kubectl get nodes" in that context to see why.`,
  );
}
