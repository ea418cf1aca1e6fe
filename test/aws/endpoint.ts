import { freePort, startServer } from './server-process.ts';

/** Something that speaks the AWS APIs. */
export interface AwsEndpoint {
  readonly url: string;
  /** The process that was started for it; absent where it was given. */
  readonly pid?: number;
  /** Stops what was started for it; leaves an endpoint that was given alone. */
  close(): Promise<void>;
}

/**
 * The AWS stand-in the contract tests run against: the one `AWS_ENDPOINT_URL` names, or else a MiniStack of our
 * own on a free port of the loopback interface. Rejects, so that the tests fail and are never skipped, when
 * there is neither.
 */
export async function awsEndpoint(): Promise<AwsEndpoint> {
  const given = process.env['AWS_ENDPOINT_URL'];
  return given ? { url: given, close: async () => {} } : startMiniStack(await freePort());
}

/** What every SDK client of the tests is made with: the endpoint, a region, and credentials that are no secret. */
export function awsClientConfig(url: string) {
  return {
    endpoint: url,
    region: 'us-east-1',
    credentials: { accessKeyId: 'test', secretAccessKey: 'test' },
  } as const;
}

/** Starts a MiniStack of our own on a port of the loopback interface; `env` is what else its environment holds. */
export async function startMiniStack(
  port: number,
  env: Readonly<Record<string, string>> = {},
): Promise<AwsEndpoint> {
  // MiniStack's queue URLs say `localhost`, so the endpoint does too.
  const url = `http://localhost:${port}`;
  const { pid, close } = await startServer({
    command: 'ministack',
    args: [],
    env: { ...env, BIND_HOST: '127.0.0.1', GATEWAY_PORT: `${port}`, PERSIST_STATE: '0' },
    url: `${url}/_ministack/health`,
    whenMissing:
      'No AWS endpoint to test against: install MiniStack with `pip install ministack`, or set AWS_ENDPOINT_URL.',
  });
  return { url, pid, close };
}
