import type { Connection } from '#shared/kubernetes/http/connection.ts';

/** A cluster under a context's name, and the token of its user. */
export interface KubeconfigEntry {
  readonly context: string;
  readonly connection: Pick<Connection, 'requestOptions'>;
  readonly token: string;
}

/** Returns the content of a kubeconfig file with the servers of the connections and these tokens. */
export async function kubeconfigText(entries: readonly KubeconfigEntry[]): Promise<string> {
  const clusters = await Promise.all(
    entries.map(async ({ context, connection }) => ({
      name: context,
      cluster: await clusterFields(connection),
    })),
  );
  return JSON.stringify({
    apiVersion: 'v1',
    kind: 'Config',
    clusters,
    users: entries.map(({ context, token }) => ({ name: context, user: { token } })),
    contexts: entries.map(({ context }) => ({ name: context, context: { cluster: context, user: context } })),
  });
}

async function clusterFields(connection: KubeconfigEntry['connection']): Promise<object> {
  const { server, ca, rejectUnauthorized, servername } = await connection.requestOptions();
  const authorities = ca === undefined ? undefined : String(ca);
  return {
    server: server.href,
    ...(authorities ? { 'certificate-authority-data': Buffer.from(authorities).toString('base64') } : {}),
    ...(rejectUnauthorized === false ? { 'insecure-skip-tls-verify': true } : {}),
    ...(servername ? { 'tls-server-name': servername } : {}),
  };
}
