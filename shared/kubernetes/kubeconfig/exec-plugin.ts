import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { load } from 'js-yaml';
import * as z from 'zod';
import { defined } from '#shared/defined.ts';
import { firstFault, readAs } from '#shared/text/read-as.ts';
import type { KubeconfigCluster, KubeconfigExec } from './kubeconfig-file.ts';

/** A plugin's output is no credential. The message is a clause without a full stop, and without the output. */
export class PluginOutputError extends Error {
  override readonly name = 'PluginOutputError';
}

const text = z
  .string()
  .nullish()
  .transform((value) => value || undefined);

const ExecCredential = z.object({
  apiVersion: text,
  status: z.object({
    token: text,
    clientCertificateData: text,
    clientKeyData: text,
    expirationTimestamp: z.iso.datetime({ offset: true }).nullish(),
  }),
});
export type PluginCredential = z.infer<typeof ExecCredential>['status'];

/** A credential has a few KB. */
const MAX_OUTPUT_BYTES = 1024 * 1024;

const EXEC_EXTENSION = 'client.authentication.k8s.io/exec';

/**
 * Runs a credentials plugin of a kubeconfig, whose output is kept until it expires. Rejects if the plugin fails, with
 * `PluginOutputError` if it prints no credential, and when `signal` aborts: then it is killed with all that it started.
 */
export function execPlugin(exec: KubeconfigExec, cluster: KubeconfigCluster) {
  let credential: PluginCredential | undefined;
  return async (signal: AbortSignal): Promise<PluginCredential> => {
    const { expirationTimestamp } = credential ?? {};
    const isOver = expirationTimestamp ? Date.parse(expirationTimestamp) <= Date.now() : false;
    if (credential === undefined || isOver) {
      const { interactiveMode, installHint } = exec;
      if (interactiveMode === 'Always')
        throw new PluginOutputError('it asks a person (interactiveMode: Always), and nobody is there');
      const output = await outputOf(exec, cluster, signal).catch((error: unknown) => {
        throw installHint && error instanceof Error ? Object.assign(error, { installHint }) : error;
      });
      credential = credentialIn(output, exec);
    }
    return credential;
  };
}

/** Reads a plugin's output by the rules of client-go. Throws `PluginOutputError`. */
function credentialIn(output: string, { apiVersion }: KubeconfigExec): PluginCredential {
  const { success, data, error } = readAs(ExecCredential, parsed(output));
  if (!success) {
    const { field, fault } = firstFault(error);
    throw new PluginOutputError(`its output is wrong at ${field || 'its top'}: ${fault}`);
  }
  if ((data.apiVersion ?? apiVersion) !== apiVersion)
    throw new PluginOutputError(`its apiVersion is not ${apiVersion}, which the kubeconfig names`);
  const { token, clientCertificateData: cert, clientKeyData: key } = data.status;
  if (!cert !== !key)
    throw new PluginOutputError('its status has only one of clientCertificateData and clientKeyData');
  if (!token && !cert) throw new PluginOutputError('its status has neither a token nor a certificate');
  return data.status;
}

/** Output is JSON or YAML. Something else is returned as no value. */
function parsed(output: string): unknown {
  try {
    return load(output, { maxAliases: 0 });
  } catch {
    return undefined;
  }
}

function clusterInfo(cluster: KubeconfigCluster): object {
  const {
    server,
    'certificate-authority': file,
    'certificate-authority-data': data = file && readFileSync(file).toString('base64'),
    extensions,
  } = cluster;
  const known = ['tls-server-name', 'insecure-skip-tls-verify', 'proxy-url', 'disable-compression'];
  const config = extensions.find(({ name }) => name === EXEC_EXTENSION)?.extension;
  return {
    server,
    ...Object.fromEntries(known.flatMap((field) => (cluster[field] ? [[field, cluster[field]]] : []))),
    ...(data ? { 'certificate-authority-data': data } : {}),
    ...defined({ config }),
  };
}

async function outputOf(
  { apiVersion, command, args, env, provideClusterInfo }: KubeconfigExec,
  cluster: KubeconfigCluster,
  signal: AbortSignal,
): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const plugin = spawn(command, args, {
    env: {
      ...process.env,
      ...Object.fromEntries(env.map(({ name, value }) => [name, value])),
      // Plugins of the API's v1 require this variable (client-go sets it). It also disables prompts.
      KUBERNETES_EXEC_INFO: JSON.stringify({
        apiVersion,
        kind: 'ExecCredential',
        spec: { interactive: false, ...(provideClusterInfo ? { cluster: clusterInfo(cluster) } : {}) },
      }),
    },
    // A plugin's error output may contain a secret.
    stdio: ['ignore', 'pipe', 'ignore'],
    // The plugin has a process group of its own, so that its child processes are killed with it.
    detached: true,
  });
  const kill = (): void => {
    if (plugin.pid === undefined) return;
    try {
      process.kill(-plugin.pid, 'SIGKILL');
    } catch {
      // The plugin has just ended.
    }
  };
  const giveUp = (): void => {
    kill();
    reject(signal.reason);
  };
  const pieces: Buffer[] = [];
  let bytes = 0;
  plugin.stdout.on('data', (piece: Buffer) => {
    bytes += piece.length;
    if (bytes > MAX_OUTPUT_BYTES) giveUp();
    else pieces.push(piece);
  });
  plugin.once('error', reject);
  plugin.once('close', (code) => {
    if (code === 0) resolve(Buffer.concat(pieces).toString());
    else reject(new Error('the plugin failed'));
  });
  signal.addEventListener('abort', giveUp);
  process.once('exit', kill);
  try {
    return await promise;
  } finally {
    signal.removeEventListener('abort', giveUp);
    process.removeListener('exit', kill);
  }
}
