import { Command, InvalidArgumentError, Option } from 'commander';
import { policyFile } from '#shared/state/policy-file.ts';
import { HISTORY_DAYS, MAX_HISTORY_DAYS, MIN_HISTORY_DAYS } from '#shared/state/stored.ts';
import { VERSION } from '#shared/version.ts';
import { LOG_FORMATS, type LogFormat } from './terminal.ts';

export interface StartOptions {
  /** Contexts of the kubeconfig to manage. Empty, and not in a cluster: the simulated cluster. */
  readonly contexts: readonly string[];
  readonly kubeconfig: string | undefined;
  /** Present: the state is kept in the cluster, in this namespace, which has a default. */
  readonly inCluster: { readonly namespace: string | undefined } | undefined;
  readonly stateDir: string;
  readonly host: string;
  readonly port: number;
  readonly comparisonOperators: boolean;
  readonly log: LogFormat;
  readonly enforce: boolean;
  readonly policyFile: string | undefined;
  readonly historyDays: number;
  /** Port of the console. Absent: the console is not served. */
  readonly consolePort: number | undefined;
}

/** Default port: any free port. */
const DEFAULT_PORT = 0;
const HIGHEST_PORT = 65_535;

/** `--help` and `--version` print their text and exit. Invalid usage prints one sentence and exits. */
export function parseOptions(argv: readonly string[]): StartOptions {
  const command = new Command('npm start --')
    .description(
      "Run the whole service in this process. It evicts pods that don't tolerate their node's NoExecute taints, or, in " +
        'observe mode, shows which pods it would evict. Without a cluster, it starts a simulated one.',
    )
    .version(VERSION)
    .showHelpAfterError('To list all options, run npm start -- --help.')
    .addOption(
      new Option('--context <name>', 'kubeconfig context of a cluster to manage; repeatable')
        .argParser((name: string, names: readonly string[]) => [...names, name])
        .default([], 'none: a simulated cluster'),
    )
    .option('--kubeconfig <file>', 'kubeconfig file (default: $KUBECONFIG, then ~/.kube/config)')
    .option(
      '--in-cluster',
      'manage the cluster in which this process runs, with the state in that cluster and leader election among ' +
        'replicas; with --context, manage that cluster from outside',
      false,
    )
    .addOption(
      new Option(
        '--namespace <name>',
        "namespace of the state, with --in-cluster (default: the pod's own; from outside: taintward)",
      ).argParser(notEmpty('a namespace')),
    )
    .option('--enforce', 'evict pods in clusters without a policy (default: observe mode)', false)
    .addOption(
      new Option(
        '--policy <file>',
        'policy document for all these clusters (docs/reference/policy.md); applied again when it changes',
      ).argParser(notEmpty('a file')),
    )
    .addOption(
      new Option('--state-dir <dir>', 'directory of the state: pending evictions, history, and policies')
        .argParser(notEmpty('a directory'))
        .default('.taintward'),
    )
    .addOption(new Option('--state <dir>').argParser(notEmpty('a directory')).hideHelp())
    // An alias.
    .on('option:state', function (this: Command, dir: string) {
      this.setOptionValueWithSource('stateDir', dir, 'cli');
    })
    .addOption(
      new Option('--history-days <number>', 'days for which history and audit are kept')
        .argParser(parseHistoryDays)
        .default(HISTORY_DAYS),
    )
    .addOption(
      new Option('--host <address>', 'address of /healthz, /readyz, and /metrics')
        .argParser(notEmpty('an address of this machine'))
        .default('127.0.0.1'),
    )
    .addOption(
      new Option('--port <number>', 'port of /healthz, /readyz, and /metrics')
        .argParser(parsePort)
        .default(DEFAULT_PORT, 'any free one'),
    )
    .addOption(
      new Option('--console-port <number>', 'port of the web console, which is served to this machine only')
        .argParser(parsePort)
        .default(DEFAULT_PORT, 'any free one; none with --in-cluster'),
    )
    .option('--no-console', 'do not serve the console')
    .option(
      '--comparison-operators',
      'support the toleration operators Lt and Gt; only for clusters with the feature gate ' +
        'TaintTolerationComparisonOperators',
      false,
    )
    .addOption(
      new Option('--log <format>', 'log format: text for people, or json with one line per event')
        .choices(LOG_FORMATS)
        .default('text'),
    )
    .parse(argv, { from: 'user' });
  const found = command.opts<
    Omit<StartOptions, 'contexts' | 'inCluster' | 'policyFile'> & {
      context: readonly string[];
      inCluster: boolean;
      namespace?: string;
      state?: string;
      policy?: string;
      console: boolean;
    }
  >();
  if (found.kubeconfig !== undefined && found.context.length === 0) {
    command.error('error: --kubeconfig requires --context NAME, which selects the cluster to manage');
  }
  if (found.namespace !== undefined && !found.inCluster) {
    command.error(
      'error: --namespace requires --in-cluster: it is the namespace of the state in the cluster',
    );
  }
  if (found.inCluster && found.context.length > 1) {
    command.error('error: --in-cluster manages one cluster: specify at most one --context');
  }
  if (found.inCluster && command.getOptionValueSource('stateDir') === 'cli') {
    command.error(
      'error: --state-dir and --in-cluster are mutually exclusive: with --in-cluster, the state is in the cluster',
    );
  }
  const { context, namespace, state: _alias, policy, console, ...same } = found;
  return {
    ...same,
    contexts: context,
    inCluster: found.inCluster ? { namespace } : undefined,
    policyFile: policy,
    // Nobody can open a browser on a pod's loopback interface.
    consolePort: console && !found.inCluster ? found.consolePort : undefined,
  };
}

/** Reports whether the service manages the simulated cluster. */
export const isSimulated = ({ contexts, inCluster }: StartOptions): boolean =>
  contexts.length === 0 && !inCluster;

/** Returns the service's options. The simulated cluster is for trying Taintward, so its pods are evicted. */
export const serviceOptions = (options: StartOptions) => ({
  probes: { host: options.host, port: options.port, setBy: { host: '--host', port: '--port' } },
  matching: { comparisonOperators: options.comparisonOperators },
  policies: {
    enforce: options.enforce || isSimulated(options),
    source: options.policyFile === undefined ? undefined : policyFile(options.policyFile),
  },
});

function notEmpty(what: string): (text: string) => string {
  return (text) => {
    if (text === '') throw new InvalidArgumentError(`Specify ${what}, or omit the option.`);
    return text;
  };
}

function parseHistoryDays(text: string): number {
  const days = Number(text);
  if (!/^\d+$/.test(text) || days < MIN_HISTORY_DAYS || days > MAX_HISTORY_DAYS) {
    throw new InvalidArgumentError(`specify days, from ${MIN_HISTORY_DAYS} to ${MAX_HISTORY_DAYS}.`);
  }
  return days;
}

function parsePort(text: string): number {
  const port = Number(text);
  if (!/^\d+$/.test(text) || port > HIGHEST_PORT) {
    throw new InvalidArgumentError(`specify a port number from 0 to ${HIGHEST_PORT}.`);
  }
  return port;
}
