import type { RequestOptions } from 'node:https';
import type { KubeConfig } from '@kubernetes/client-node';
import type { Connection, RequestAccess } from './connection.ts';
import { KubeconfigError, systemErrorCode } from './kubeconfig-error.ts';

/** For a credentials plugin or an identity provider; a plugin that asks a question would wait for ever. */
const CREDENTIALS_TIMEOUT_MS = 30_000;

/**
 * A connection with the credentials that client-node finds for a `KubeConfig` of one cluster and one user (it
 * keeps a single token file's content per `KubeConfig`, whosoever it is). `who` names the user in messages;
 * `load` reads it, first now (and throws `KubeconfigError`), then after each time the server refused it.
 */
export function clientNodeConnection(server: URL, who: string, load: () => KubeConfig): Connection {
  let config: KubeConfig | undefined = load();
  let underway: Promise<RequestAccess> | undefined;

  const obtain = async (): Promise<RequestAccess> => {
    try {
      config ??= load();
      const options: RequestOptions = {};
      await config.applyToHTTPSOptions(options);
      return { server, ...accessOf(options) };
    } catch (error) {
      throw explained(who, error);
    }
  };

  return {
    host: server.host,
    async requestOptions() {
      // client-node would start a plugin once per waiting request, and again while one hangs.
      underway ??= obtain().finally(() => {
        underway = undefined;
      });
      return inTime(underway, who);
    },
    forgetCredentials() {
      config = undefined;
    },
  };
}

async function inTime<T>(answer: Promise<T>, who: string): Promise<T> {
  const { promise: tooLate, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => {
    const seconds = CREDENTIALS_TIMEOUT_MS / 1000;
    const why = `no credentials came within ${seconds} s, their plugin may wait for an answer`;
    reject(new KubeconfigError(`For ${who} ${why}: log in by hand first.`));
  }, CREDENTIALS_TIMEOUT_MS);
  try {
    return await Promise.race([answer, tooLate]);
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
}: RequestOptions): Omit<RequestAccess, 'server'> {
  const given = Object.entries(headers ?? {}).map(([name, value]) => [name, String(value).trim()] as const);
  return {
    headers: {
      ...Object.fromEntries(given),
      ...(auth ? { Authorization: `Basic ${Buffer.from(auth).toString('base64')}` } : {}),
    },
    ...(ca === undefined ? {} : { ca }),
    ...(cert === undefined ? {} : { cert }),
    ...(key === undefined ? {} : { key }),
    ...(rejectUnauthorized === undefined ? {} : { rejectUnauthorized }),
    ...(servername === undefined ? {} : { servername }),
  };
}

function explained(who: string, error: unknown): KubeconfigError {
  if (error instanceof KubeconfigError) return error;
  const code = systemErrorCode(error);
  if (error instanceof Error && 'path' in error && 'syscall' in error) {
    return String(error.syscall).startsWith('spawn')
      ? new KubeconfigError(
          `The credentials plugin ${error.path} of ${who} cannot be started (${code}): install it, or put it on PATH.`,
        )
      : new KubeconfigError(`The file ${error.path} of ${who} cannot be read (${code}): restore it.`);
  }
  // What a plugin or an identity provider says may hold a token, so it stays unsaid.
  return new KubeconfigError(
    `The credentials plugin or login of ${who} failed: run "kubectl get nodes" in that context to see why.`,
  );
}
