import { dirname } from 'node:path';
import { startMiniStack } from '#test/aws/endpoint.ts';
import { isLocalStack } from '#test/aws/localstack.ts';
import { freePort } from '#test/aws/server-process.ts';
import { AwsTap } from './aws-tap.ts';

const REGION = 'us-east-1';
const ACCOUNT = '000000000000';

/** The stand-in for an AWS account. */
export interface EmulatedAccount {
  /** The endpoint. */
  readonly url: string;
  /** `aws://ACCOUNT/REGION`, the form that `cdk bootstrap` requires. */
  readonly environment: string;
  /** The deployed functions' requests to AWS; absent where a given stand-in runs the functions without a tap. */
  readonly functionsTap?: AwsTap;
  /** True for a MiniStack that was started by this process. */
  readonly isOurs: boolean;
  /** True for LocalStack. */
  readonly isLocalStack: boolean;
  /** The process ID of that MiniStack. */
  readonly pid?: number;
  close(): Promise<void>;
}

/**
 * Opens the account that `AWS_ENDPOINT_URL` names, for example LocalStack (`npm run localstack`), or otherwise starts a
 * MiniStack.
 */
export async function openEmulatedAccount(): Promise<EmulatedAccount> {
  const environment = `aws://${ACCOUNT}/${REGION}`;
  const given = process.env['AWS_ENDPOINT_URL'];
  if (given) {
    const close = async () => {};
    return { url: given, environment, isOurs: false, isLocalStack: await isLocalStack(given), close };
  }
  const port = await freePort();
  const functionsTap = await AwsTap.open(`http://localhost:${port}`);
  const endpoint = await startMiniStack(port, {
    // MiniStack passes these to the functions, which it runs with the first node on its PATH.
    AWS_ENDPOINT_URL: functionsTap.url,
    PATH: nodeFirst(),
    NODE_OPTIONS: `--import ${new URL('loops/preload.ts', import.meta.url).href}`,
  });
  const close = async () => {
    await endpoint.close();
    await functionsTap.close();
  };
  const { url, pid } = endpoint;
  const about = { environment, isOurs: true, isLocalStack: false };
  return { url, ...about, functionsTap, close, ...(pid === undefined ? {} : { pid }) };
}

/** Returns the environment of a process that uses the account, by way of `url`. */
export function accountEnvironment(url: string): NodeJS.ProcessEnv {
  return {
    PATH: nodeFirst(),
    HOME: process.env['HOME'],
    AWS_ENDPOINT_URL: url,
    AWS_ENDPOINT_URL_S3: url,
    AWS_REGION: REGION,
    AWS_DEFAULT_REGION: REGION,
    AWS_ACCESS_KEY_ID: 'test',
    AWS_SECRET_ACCESS_KEY: 'test',
  };
}

const nodeFirst = (): string => `${dirname(process.execPath)}:${process.env['PATH']}`;
