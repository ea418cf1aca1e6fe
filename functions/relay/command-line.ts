import { Command } from 'commander';
import { relayEnvironment } from '#shared/aws/environment.ts';
import { environmentText, environmentVariables } from '#shared/aws/environment-text.ts';
import { VERSION } from '#shared/version.ts';

const PURPOSES: Readonly<Record<keyof typeof relayEnvironment.shape, string>> = {
  TABLE_NAME: "the stack's table",
  NODE_DELTAS_URL: 'URL of the queue for node deltas',
  POD_DELTAS_URL: 'URL of the queue for pod deltas',
  METRIC_NAMESPACE: 'CloudWatch namespace of the metrics',
  CLUSTERS: 'clusters to manage: names and prefixes (edge-*), separated by commas; default: all',
  INSTALLATION_NAME: 'installation name, shown to others that share a cluster',
  NODE_CAPACITY: 'maximum number of nodes while other relays manage the rest; each cluster adds 100',
  ENDPOINT: 'localstack, where LocalStack is in place of AWS; refused in a real account',
  PROBE_HOST: 'address for /healthz, /readyz and /metrics',
  PROBE_PORT: 'port for them',
};

export const RELAY_VARIABLES = environmentVariables(relayEnvironment, PURPOSES);

/**
 * Reads the command line, which has no arguments: the environment configures a relay. `--help` and
 * `--version` print their text and exit. Invalid usage prints one sentence and exits.
 */
export function parseCommandLine(argv: readonly string[]): void {
  new Command('npm run relay --')
    .description(
      'Runs a relay of the deployed service until it is asked to stop. It watches the registered clusters and sends deltas ' +
        'of their tainted nodes and pods to the queues. Start two or more: they share the clusters.',
    )
    .version(VERSION)
    .addHelpText(
      'after',
      `\nEnvironment, which the stack prints for a relay of your own:\n${environmentText(RELAY_VARIABLES)}`,
    )
    .parse(argv, { from: 'user' });
}
