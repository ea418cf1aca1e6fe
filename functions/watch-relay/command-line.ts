import { Command } from 'commander';
import { relayEnvironment } from '#shared/aws/environment.ts';
import { environmentText } from '#shared/aws/environment-text.ts';
import { VERSION } from '#shared/version.ts';

/** What each variable of the relay's environment is for. */
const PURPOSES: Readonly<Record<keyof typeof relayEnvironment.shape, string>> = {
  TABLE_NAME: "the stack's table",
  NODE_DELTAS_URL: 'the queue for what is told of nodes',
  POD_DELTAS_URL: 'the queue for what is told of pods',
  METRIC_NAMESPACE: 'under which CloudWatch shows the metrics',
  CLUSTERS:
    'the only clusters to follow, names and beginnings of names (edge-*), separated by commas; absent: all',
  INSTALLATION_NAME: 'who evicts, so that others that share a cluster are noticed',
  NODE_CAPACITY: 'how many nodes to take on while other relays take the rest; a cluster counts as 100',
  ENDPOINT: 'localstack, where LocalStack is in place of AWS; refused in a real account',
  PROBE_HOST: 'where /healthz, /readyz and /metrics are served',
  PROBE_PORT: 'their port',
};

/**
 * Reads the command line, which says nothing: a relay is told all by its environment. Prints usage or the version and
 * exits for `--help` and `--version`, and with one sentence for anything else.
 */
export function parseCommandLine(argv: readonly string[]): void {
  new Command('npm run relay --')
    .description(
      'Runs a relay of the deployed service until it is asked to stop: follows the registered clusters and tells the ' +
        'queues of their tainted nodes and the pods there. Start two or more; they share the clusters.',
    )
    .version(VERSION)
    .addHelpText(
      'after',
      `\nEnvironment, which the stack prints for a relay of your own:\n${environmentText(relayEnvironment, PURPOSES)}`,
    )
    .allowExcessArguments(false)
    .parse(argv, { from: 'user' });
}
