import type { EKSClient } from '@aws-sdk/client-eks';
import { SignatureV4 } from '@smithy/signature-v4';
import type { EpochMs } from '#shared/eviction/identity.ts';

/**
 * What `aws eks get-token` puts there. STS itself takes such a URL for 15 minutes whatever it says; the
 * authenticator refuses one that asks for more.
 */
const URL_EXPIRES_SECONDS = 60;
const PREFIX = 'k8s-aws-v1.';

/** A bearer token for an EKS cluster, and when the credentials that signed it end, if they do. */
export interface EksToken {
  readonly token: string;
  readonly credentialsExpireAt: EpochMs | undefined;
}

/**
 * Signs a token as the client's identity: a presigned `sts:GetCallerIdentity` that names the cluster, which the
 * cluster's authenticator performs. Asks nobody but the credentials' provider, with whose error it rejects.
 */
export async function eksToken({ config }: EKSClient, clusterName: string, now: EpochMs): Promise<EksToken> {
  const [region, credentials] = await Promise.all([config.region(), config.credentials()]);
  const signer = new SignatureV4({ service: 'sts', region, credentials, sha256: config.sha256 });
  // Regional endpoints differ in the service's name alone, in every partition.
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
