import { GetSecretValueCommand } from '@aws-sdk/client-secrets-manager';
import type { Connection, RequestAccess } from '#shared/kubernetes/http/connection.ts';
import {
  currentContext,
  mergeKubeconfigs,
  parseKubeconfig,
  resolveContext,
} from '#shared/kubernetes/kubeconfig/kubeconfig-file.ts';
import { staticAccess } from '#shared/kubernetes/kubeconfig/static-access.ts';
import type { KubeconfigSecretAccess } from '#shared/state/registry.ts';
import { RefreshingCache } from '#shared/time/cache.ts';
import type { Clock } from '#shared/time/clock.ts';
import { AccessError, awsAccessError } from './access-error.ts';
import type { AwsClients } from './aws-clients.ts';

/** A kubeconfig in a secret, as one part of the service reads it. */
export type SecretWay = Omit<KubeconfigSecretAccess, 'secretArn'> & { readonly secretArn: string };

/** Interval at which a rotated secret is noticed while its former content still works; 10,000 reads cost $0.05. */
export const REFRESH_MS = 5 * 60_000;

/** Returns a connection to a cluster by a kubeconfig in AWS Secrets Manager; reads the secret again as it rotates. */
export function kubeconfigSecretConnection(access: SecretWay, aws: AwsClients, clock: Clock): Connection {
  const { secretArn } = access;
  let host = `the server in ${secretArn}`;
  const kept = new RefreshingCache(async () => {
    const value = contextOf(await secretText(secretArn, aws), access);
    host = value.server.host;
    // While the secret can't be read, its previous credentials are used for as long as the server accepts them.
    return { value, freshForMs: REFRESH_MS, servesForMs: Number.POSITIVE_INFINITY };
  }, clock);
  return {
    get host() {
      return host;
    },
    requestOptions: () => kept.get(),
    forgetCredentials() {
      kept.forget();
    },
  };
}

function contextOf(content: string, { secretArn, context }: SecretWay): RequestAccess {
  const source = `in ${secretArn}`;
  const merged = mergeKubeconfigs(source, [parseKubeconfig(content, source)]);
  const name = context ?? currentContext(merged);
  return staticAccess(name, resolveContext(merged, name));
}

async function secretText(secretArn: string, aws: AwsClients): Promise<string> {
  const command = new GetSecretValueCommand({ SecretId: secretArn });
  try {
    const { SecretString } = await aws.secrets(regionOf(secretArn)).send(command);
    if (SecretString) return SecretString;
  } catch (error) {
    throw awsAccessError(error, `secretsmanager:GetSecretValue on ${secretArn}`);
  }
  throw new AccessError(`${secretArn} holds no text; store the kubeconfig as its SecretString`);
}

const regionOf = (secretArn: string): string => secretArn.split(':')[3] ?? '';
