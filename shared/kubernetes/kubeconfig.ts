import { accessSync, constants } from 'node:fs';
import { KubeConfig } from '@kubernetes/client-node';
import { clientNodeConnection } from './client-node-connection.ts';
import type { Connection } from './connection.ts';
import { currentContext, type ResolvedContext, resolveContext, serverUrl } from './kubeconfig-context.ts';
import { KubeconfigError, systemErrorCode } from './kubeconfig-error.ts';
import { readKubeconfig } from './kubeconfig-file.ts';
import type { KubeconfigCluster, KubeconfigUser } from './kubeconfig-text.ts';

/** Where Kubernetes puts a pod's own credentials. */
const SERVICE_ACCOUNT = '/var/run/secrets/kubernetes.io/serviceaccount';

/** A context of a kubeconfig, as a way to reach its cluster. */
export interface Context {
  readonly name: string;
  readonly connection: Connection;
}

/**
 * The named contexts of a kubeconfig; of none named, its current one. `kubeconfig` is a path; absent: where
 * kubectl looks. Credentials are obtained when they are needed, not here. Throws `KubeconfigError`.
 */
export function loadContexts(options: {
  readonly kubeconfig?: string;
  readonly contexts: readonly string[];
}): readonly Context[] {
  const { contexts, kubeconfig } = options;
  const names = contexts.length > 0 ? contexts : [currentContext(readKubeconfig(kubeconfig))];
  return names.map((name) => ({ name, connection: contextConnection(name, kubeconfig) }));
}

/** One context of a kubeconfig, as {@link loadContexts} says. */
export function contextConnection(name: string, kubeconfig: string | undefined): Connection {
  const resolve = () => resolveContext(readKubeconfig(kubeconfig), name);
  const server = serverUrl(name, resolve());
  return clientNodeConnection(server, `context "${name}"`, () => clientConfig(name, resolve()));
}

/**
 * The cluster that this process runs in, by its pod's service account; the token is read again as it rotates.
 * `root` goes before the well-known paths. Throws `KubeconfigError` outside a pod.
 */
export function inClusterConnection(root = ''): Connection {
  if (!process.env['KUBERNETES_SERVICE_HOST'] || !process.env['KUBERNETES_SERVICE_PORT']) {
    throw new KubeconfigError(
      'This process does not run in a Kubernetes pod (KUBERNETES_SERVICE_HOST is not set): use a kubeconfig.',
    );
  }
  const who = 'the service account of this pod';
  for (const file of ['ca.crt', 'token']) checkReadable(`${root}${SERVICE_ACCOUNT}/${file}`, who);
  const config = () => {
    const loaded = new KubeConfig();
    loaded.loadFromCluster(root);
    return loaded;
  };
  return clientNodeConnection(new URL(config().getCurrentCluster()?.server ?? ''), who, config);
}

/** What client-node is to know, in its own terms and with what it would miss. */
function clientConfig(name: string, { cluster, user }: ResolvedContext): KubeConfig {
  refuseUnsupported(name, cluster, user);
  for (const file of [
    cluster['certificate-authority'],
    user['client-certificate'],
    user['client-key'],
    user.tokenFile,
  ]) {
    if (file !== undefined) checkReadable(file, `context "${name}"`);
  }
  const config = new KubeConfig();
  config.loadFromString(
    JSON.stringify({
      clusters: [{ name, cluster: clientCluster(cluster) }],
      users: [{ name, user: clientUser(user) }],
      contexts: [{ name, context: { cluster: name, user: name } }],
      'current-context': name,
    }),
  );
  return config;
}

/** Left out in silence, each would act as somebody else or take another way than the kubeconfig means. */
function refuseUnsupported(name: string, cluster: KubeconfigCluster, user: KubeconfigUser): void {
  const found = ['proxy-url', 'as-uid', 'as-groups', 'as-user-extra'].find(
    (field) => cluster[field] || user[field],
  );
  if (found === undefined) return;
  throw new KubeconfigError(`Context "${name}" uses ${found}, which is not supported: use one without it.`);
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

/** client-node refuses plain http unless it need not verify TLS; there is none to verify. */
const clientCluster = (cluster: KubeconfigCluster): object =>
  cluster.server.startsWith('http:') ? { ...cluster, 'insecure-skip-tls-verify': true } : cluster;

function clientUser({ token, tokenFile, exec, ...user }: KubeconfigUser): object {
  return {
    ...user,
    // kubectl's `tokenFile`, read again as it rotates, is known to client-node under this name only.
    ...(tokenFile === undefined
      ? { token }
      : { 'auth-provider': { name: 'tokenFile', config: { tokenFile } } }),
    ...(exec ? { exec: { ...exec, env: [...exec.env, execInfo(exec.apiVersion)] } } : {}),
  };
}

/** Plugins of the API's v1 demand it (client-go sets it), and it tells them not to ask questions. */
const execInfo = (apiVersion: string): object => ({
  name: 'KUBERNETES_EXEC_INFO',
  value: JSON.stringify({ apiVersion, kind: 'ExecCredential', spec: { interactive: false } }),
});
