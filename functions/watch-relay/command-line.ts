import { Command } from 'commander';
import { type RelayEnvironment, relayEnvironment } from '#shared/aws/environment.ts';
import { VERSION } from '#shared/version.ts';

/** What each variable of the relay's environment is for. */
const VARIABLES: Readonly<Record<keyof RelayEnvironment, string>> = {
  TABLE_NAME: "the stack's table",
  NODE_DELTAS_URL: 'the queue for what is told of nodes',
  POD_DELTAS_URL: 'the queue for what is told of pods',
  METRIC_NAMESPACE: 'under which CloudWatch shows the metrics',
  CLUSTERS:
    'the only clusters to follow, names and beginnings of names (edge-*), separated by commas; absent: all',
  NODE_BUDGET: 'how many nodes to take on while other relays take the rest; a cluster counts as 100',
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
      `\nEnvironment, which the stack prints for a relay of your own:\n${environmentText()}`,
    )
    .allowExcessArguments(false)
    .parse(argv, { from: 'user' });
}

function environmentText(): string {
  const names = Object.keys(VARIABLES) as (keyof RelayEnvironment)[];
  const told = names.map((name) => [name, `${VARIABLES[name]}${defaultText(name)}`] as const);
  const lines = [
    ...told,
    ['AWS_REGION', 'where the stack is; credentials come as to every AWS SDK'] as const,
  ];
  const width = Math.max(...lines.map(([name]) => name.length));
  return lines.map(([name, what]) => `  ${name.padEnd(width)}  ${what}`).join('\n');
}

function defaultText(name: keyof RelayEnvironment): string {
  const { success, data } = relayEnvironment.shape[name].safeParse(undefined);
  return success ? ` (default: ${data})` : '';
}
