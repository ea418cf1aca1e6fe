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
  readonly secretArn: string;
  readonly #secrets: SecretsManagerClient;

  private constructor(
    name: string,
    parts: { readonly cluster: TestCluster; readonly wiretap: Wiretap; readonly secretArn: string },
    secrets: SecretsManagerClient,
  ) {
    this.name = name;
    this.cluster = parts.cluster;
    this.wiretap = parts.wiretap;
    this.secretArn = parts.secretArn;
    this.#secrets = secrets;
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
    const kubeconfig = await kubeconfigText([
      { context: name, connection: wiretap.connection, token: account.token },
    ]);
    const { ARN = '' } = await secrets.send(
      new CreateSecretCommand({ Name: `taintward/${run}-${name}`, SecretString: kubeconfig }),
    );
    return new ManagedCluster(name, { cluster, wiretap, secretArn: ARN }, secrets);
  }

  async close(): Promise<void> {
    await this.#secrets.send(
      new DeleteSecretCommand({ SecretId: this.secretArn, ForceDeleteWithoutRecovery: true }),
    );
    await this.wiretap.close();
    await this.cluster.close();
  }
}
