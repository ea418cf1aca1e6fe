import {
  CreateSecretCommand,
  DeleteSecretCommand,
  type SecretsManagerClient,
} from '@aws-sdk/client-secrets-manager';
import { Account } from '#test/cluster/rig/account.ts';
import { kubeconfigText } from '#test/cluster/rig/kubeconfig.ts';
import { TestCluster } from '#test/cluster/rig/test-cluster.ts';
import { Wiretap } from '#test/cluster/rig/wiretap.ts';

/**
 * A cluster with an account that has the least permissions, whose kubeconfig is in the emulated Secrets Manager. The
 * kubeconfig refers to a wiretap, by plain HTTP: in functions, the stand-in turns https requests to the loopback
 * interface into plain ones. The cluster suite covers TLS to API servers.
 */
export class ManagedCluster {
  /** The name under which it is registered. */
  readonly name: string;
  readonly cluster: TestCluster;
  readonly wiretap: Wiretap;
  /** The token of the account. */
  readonly token: string;
  readonly #secrets: SecretsManagerClient;
  /** The ARNs of its secrets. The first is the account's. */
  readonly #secretArns: string[] = [];

  private constructor(
    name: string,
    parts: { readonly cluster: TestCluster; readonly wiretap: Wiretap; readonly token: string },
    secrets: SecretsManagerClient,
  ) {
    this.name = name;
    this.cluster = parts.cluster;
    this.wiretap = parts.wiretap;
    this.token = parts.token;
    this.#secrets = secrets;
  }

  get secretArn(): string {
    return this.#secretArns[0] ?? '';
  }

  static async open(
    name: string,
    variable: 'KUBECONFIG' | 'KUBECONFIG_2',
    run: string,
    secrets: SecretsManagerClient,
  ): Promise<ManagedCluster> {
    const cluster = await TestCluster.open(variable, run);
    const account = await Account.create(cluster, 'service');
    const wiretap = await Wiretap.open(cluster.connection);
    const managed = new ManagedCluster(name, { cluster, wiretap, token: account.token }, secrets);
    await managed.addSecret(`taintward/${run}-${name}`, account.token);
    return managed;
  }

  /** Stores a kubeconfig with this token. Returns the ARN of the secret. */
  async addSecret(secretName: string, token: string): Promise<string> {
    const { connection } = this.wiretap;
    const SecretString = await kubeconfigText([{ context: this.name, connection, token }]);
    const { ARN = '' } = await this.#secrets.send(
      new CreateSecretCommand({ Name: secretName, SecretString }),
    );
    this.#secretArns.push(ARN);
    return ARN;
  }

  async close(): Promise<void> {
    for (const SecretId of this.#secretArns)
      await this.#secrets.send(new DeleteSecretCommand({ SecretId, ForceDeleteWithoutRecovery: true }));
    await this.wiretap.close();
    await this.cluster.close();
  }
}
