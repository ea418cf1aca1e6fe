import { fileURLToPath } from 'node:url';
import { freePort, startServer } from './server-process.ts';

/** An endpoint that serves the AWS APIs. */
export interface AwsEndpoint {
  readonly url: string;
  /** The ID of the process that was started for it; absent where the endpoint was given. */
  readonly pid?: number;
  /** Stops the process that was started for it; leaves a given endpoint alone. */
  close(): Promise<void>;
}

/**
 * Returns the AWS stand-in for the contract tests: the one in `AWS_ENDPOINT_URL`, or else a new MiniStack on a free
 * port of the loopback interface. Rejects, so that the tests fail and are never skipped, when there is neither.
 */
export async function awsEndpoint(): Promise<AwsEndpoint> {
  const given = process.env['AWS_ENDPOINT_URL'];
  return given ? { url: given, close: async () => {} } : startMiniStack(await freePort());
}

/** Returns the configuration of the tests' SDK clients: the endpoint, a region, and credentials that are no secret. */
export function awsClientConfig(url: string) {
  return {
    endpoint: url,
    region: 'us-east-1',
    credentials: { accessKeyId: 'test', secretAccessKey: 'test' },
  } as const;
}

/** The folder from which Python takes what MiniStack lacks. */
const PATCHES = fileURLToPath(new URL('ministack', import.meta.url));

/** Starts a MiniStack on a port of the loopback interface; `env` contains its additional environment variables. */
export async function startMiniStack(
  port: number,
  env: Readonly<Record<string, string>> = {},
): Promise<AwsEndpoint> {
  // MiniStack's queue URLs contain `localhost`, so the endpoint does too.
  const url = `http://localhost:${port}`;
  const { pid, close } = await startServer({
    command: 'ministack',
    args: [],
    env: { ...env, PYTHONPATH: PATCHES, BIND_HOST: '127.0.0.1', GATEWAY_PORT: `${port}`, PERSIST_STATE: '0' },
    url: `${url}/_ministack/health`,
    whenMissing:
      'No AWS endpoint to test against: install MiniStack with `pip install ministack`, or set AWS_ENDPOINT_URL.',
  });
  return { url, pid, close };
}
