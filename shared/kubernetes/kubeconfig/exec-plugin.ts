import { spawn } from 'node:child_process';
import * as z from 'zod';
import type { KubeconfigExec } from './kubeconfig-file.ts';

/** `client.authentication.k8s.io`: a plugin's output. */
const ExecCredential = z.object({
  status: z.object({
    token: z.string().optional(),
    clientCertificateData: z.string().optional(),
    clientKeyData: z.string().optional(),
    expirationTimestamp: z.iso.datetime({ offset: true }).optional(),
  }),
});
export type PluginCredential = z.infer<typeof ExecCredential>['status'];

/** A credential has a few KB. */
const MAX_OUTPUT_BYTES = 1024 * 1024;

/** A credentials plugin of a kubeconfig, whose output is kept until it expires. */
export class ExecPlugin {
  readonly #exec: KubeconfigExec;
  #credential: PluginCredential | undefined;

  constructor(exec: KubeconfigExec) {
    this.#exec = exec;
  }

  /**
   * Returns the plugin's credential. Rejects if the plugin cannot be started, fails, or prints no credential.
   * Rejects, too, when `signal` aborts, and kills the plugin with all that it started.
   */
  async credential(signal: AbortSignal): Promise<PluginCredential> {
    const { expirationTimestamp } = this.#credential ?? {};
    const isOver = expirationTimestamp !== undefined && Date.parse(expirationTimestamp) <= Date.now();
    if (this.#credential === undefined || isOver) {
      this.#credential = ExecCredential.parse(JSON.parse(await outputOf(this.#exec, signal))).status;
    }
    return this.#credential;
  }
}

async function outputOf(
  { apiVersion, command, args, env }: KubeconfigExec,
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
        spec: { interactive: false },
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
