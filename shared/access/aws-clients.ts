import { EKSClient, type EKSClientConfig } from '@aws-sdk/client-eks';
import { SecretsManagerClient } from '@aws-sdk/client-secrets-manager';
import { fromTemporaryCredentials } from '@aws-sdk/credential-providers';
import { defined } from '#shared/defined.ts';
import type { AssumedRole, EksAccess } from '#shared/state/registry.ts';
import { CLIENT_SETTINGS } from './client-settings.ts';

/** The session's name in the CloudTrail of the account whose role is assumed: ours, and the cluster's. */
const sessionName = (cluster: string): string => `taintward-${cluster}`.slice(0, 64);

/** The AWS endpoint and credentials, if they differ from the environment's. */
export type AwsConfig = Pick<EKSClientConfig, 'endpoint' | 'credentials'>;

/** The SDK clients through which clusters are reached: one per region, or per role and cluster. */
export class AwsClients {
  readonly #config: AwsConfig;
  readonly #eks = new Map<string, EKSClient>();
  readonly #secrets = new Map<string, SecretsManagerClient>();

  constructor(config: AwsConfig = {}) {
    this.#config = config;
  }

  eks(way: EksWay): EKSClient {
    const { region, role, clusterName } = way;
    const key = JSON.stringify([region, role && [role.arn, role.externalId, clusterName]]);
    return kept(this.#eks, key, () => new EKSClient({ ...this.#options(region), ...this.#asRole(way) }));
  }

  secrets(region: string): SecretsManagerClient {
    return kept(this.#secrets, region, () => new SecretsManagerClient(this.#options(region)));
  }

  #options(region: string) {
    return { ...CLIENT_SETTINGS, ...this.#config, region };
  }

  #asRole({ region, role, clusterName }: EksWay): Pick<EKSClientConfig, 'credentials'> {
    if (role === undefined) return {};
    const { credentials, ...clientConfig } = this.#options(region);
    return {
      credentials: fromTemporaryCredentials({
        ...defined({ masterCredentials: credentials }),
        clientConfig,
        params: {
          RoleArn: role.arn,
          RoleSessionName: sessionName(clusterName),
          ...defined({ ExternalId: role.externalId }),
        },
      }),
    };
  }
}

function kept<T>(clients: Map<string, T>, key: string, make: () => T): T {
  const client = clients.get(key) ?? make();
  clients.set(key, client);
  return client;
}

/** An EKS cluster as one part of the service reaches it: with its own identity, or by a role. */
export type EksWay = Omit<EksAccess, 'role'> & { readonly role?: AssumedRole };
