import { DescribeClusterCommand, type EKSClient } from '@aws-sdk/client-eks';
import { SignatureV4 } from '@smithy/signature-v4';
import type { Connection } from '#shared/kubernetes/http/connection.ts';
import { type Obtained, RefreshingCache } from '#shared/time/cache.ts';
import type { Clock } from '#shared/time/clock.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import { AccessError, awsAccessError } from './access-error.ts';
import type { AwsClients, EksWay } from './aws-clients.ts';

/** Lifetime of a token: 15 minutes from its signing, less one for clock skew. */
const TOKEN_LIFE_MS = 14 * 60_000;
const TOKEN_REFRESH_MS = 10 * 60_000;
/** A cluster that was deleted and created again under its name has another address. */
export const DESCRIPTION_REFRESH_MS = 10 * 60_000;

interface Description {
  readonly server: URL;
  readonly ca: string;
}

/** Returns a connection to an EKS cluster as an IAM identity: this process's own, or a role that it assumes. */
export function eksConnection(access: EksWay, aws: AwsClients, clock: Clock): Connection {
  const description = new RefreshingCache(() => describe(access, aws), clock);
  const token = new RefreshingCache(() => sign(access, aws, clock), clock);
  return {
    host: `EKS cluster ${access.clusterName} in ${access.region}`,
    async requestOptions() {
      // Get the token first, so that a role that can't be assumed is reported as such.
      const headers = { Authorization: `Bearer ${await token.get()}` };
      return { ...(await description.get()), headers };
    },
    forgetCredentials() {
      token.forget();
    },
  };
}

async function describe(access: EksWay, aws: AwsClients): Promise<Obtained<Description>> {
  const command = new DescribeClusterCommand({ name: access.clusterName });
  const { cluster } = await orAccessError('eks:DescribeCluster', aws.eks(access).send(command));
  const server = URL.parse(cluster?.endpoint ?? '');
  const authority = cluster?.certificateAuthority?.data;
  if (server === null || !authority) {
    const status = cluster?.status ?? 'unknown';
    throw new AccessError(
      `it has no endpoint and CA certificate (its status is ${status}); wait until it is ACTIVE`,
    );
  }
  const value = { server, ca: Buffer.from(authority, 'base64').toString() };
  return { value, freshForMs: DESCRIPTION_REFRESH_MS, servesForMs: Number.POSITIVE_INFINITY };
}

async function sign(access: EksWay, aws: AwsClients, clock: Clock): Promise<Obtained<string>> {
  const now = clock.now();
  const signing = eksToken(aws.eks(access), access.clusterName, now);
  const action = access.role ? `sts:AssumeRole on ${access.role.arn}` : 'sts:GetCallerIdentity';
  const { token, credentialsExpireAt = Number.POSITIVE_INFINITY } = await orAccessError(action, signing);
  return {
    value: token,
    freshForMs: Math.min(TOKEN_REFRESH_MS, credentialsExpireAt - now),
    servesForMs: Math.min(TOKEN_LIFE_MS, credentialsExpireAt - now),
  };
}

async function orAccessError<T>(action: string, call: Promise<T>): Promise<T> {
  try {
    return await call;
  } catch (error) {
    throw awsAccessError(error, action);
  }
}

/**
 * The value of `aws eks get-token`; the authenticator rejects a higher one. STS accepts the URL for 15 minutes anyway.
 */
const URL_EXPIRES_SECONDS = 60;
const PREFIX = 'k8s-aws-v1.';

/**
 * Signs a bearer token for an EKS cluster as the client's identity: a presigned `sts:GetCallerIdentity` that names the
 * cluster. `credentialsExpireAt`: when the credentials that signed it expire, if they do. Rejects with the error of the
 * credentials' provider, the only one that is called.
 */
export async function eksToken({ config }: EKSClient, clusterName: string, now: EpochMs) {
  const [region, credentials] = await Promise.all([config.region(), config.credentials()]);
  const signer = new SignatureV4({ service: 'sts', region, credentials, sha256: config.sha256 });
  // Regional endpoints differ only in the service's name, in every partition.
  const eks = config.endpointProvider({ Region: region, UseDualStack: false, UseFIPS: false }).url;
  const hostname = eks.hostname.replace(/^eks\./, 'sts.');
  const { query = {} } = await signer.presign(
    {
      method: 'GET',
      protocol: 'https:',
      hostname,
      path: '/',
      query: { Action: 'GetCallerIdentity', Version: '2011-06-15' },
      headers: { host: hostname, 'x-k8s-aws-id': clusterName },
    },
    { expiresIn: URL_EXPIRES_SECONDS, signingDate: new Date(now) },
  );
  const url = new URL(`https://${hostname}/`);
  for (const [name, value] of Object.entries(query)) url.searchParams.set(name, String(value));
  return {
    token: `${PREFIX}${Buffer.from(url.href).toString('base64url')}`,
    credentialsExpireAt: credentials.expiration?.getTime(),
  };
}
