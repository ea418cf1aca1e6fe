import { EKSClient, type EKSClientConfig } from '@aws-sdk/client-eks';
import { SecretsManagerClient } from '@aws-sdk/client-secrets-manager';
import { fromTemporaryCredentials } from '@aws-sdk/credential-providers';
import { defined } from '#shared/defined.ts';
import type { AssumedRole, EksAccess } from '#shared/state/registry.ts';
import { CLIENT_SETTINGS } from './client-settings.ts';

/** Our name in the CloudTrail of the account whose role is assumed. */
const SESSION_NAME = 'taintward';

/** The AWS endpoint and credentials, if they differ from the environment's. */
export type AwsConfig = Pick<EKSClientConfig, 'endpoint' | 'credentials'>;

/** The SDK clients through which clusters are reached: one per region and role. */
export class AwsClients {
  readonly #config: AwsConfig;
  readonly #eks = new Map<string, EKSClient>();
  readonly #secrets = new Map<string, SecretsManagerClient>();

  constructor(config: AwsConfig = {}) {
    this.#config = config;
  }

  eks({ region, role }: Pick<EksWay, 'region' | 'role'>): EKSClient {
    const key = JSON.stringify([region, role?.arn, role?.externalId]);
    return kept(
      this.#eks,
      key,
      () => new EKSClient({ ...this.#options(region), ...this.#asRole(region, role) }),
    );
  }

  secrets(region: string): SecretsManagerClient {
    return kept(this.#secrets, region, () => new SecretsManagerClient(this.#options(region)));
  }

  #options(region: string) {
    return { ...CLIENT_SETTINGS, ...this.#config, region };
  }

  #asRole(region: string, role: AssumedRole | undefined): Pick<EKSClientConfig, 'credentials'> {
    if (role === undefined) return {};
    const { credentials, ...clientConfig } = this.#options(region);
    return {
      credentials: fromTemporaryCredentials({
        ...defined({ masterCredentials: credentials }),
        clientConfig,
        params: {
          RoleArn: role.arn,
          RoleSessionName: SESSION_NAME,
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
