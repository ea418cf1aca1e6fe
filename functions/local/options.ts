import { Command, InvalidArgumentError, Option } from 'commander';
import { HISTORY_DAYS, LEAST_HISTORY_DAYS, MOST_HISTORY_DAYS } from '#shared/store/stored.ts';
import { VERSION } from '#shared/version.ts';
import { LOG_FORMATS, type LogFormat } from './voice.ts';

/** What `npm start` was asked to do. */
export interface StartOptions {
  /** Contexts of the kubeconfig to manage; none, and not in a cluster: the simulated one. */
  readonly contexts: readonly string[];
  readonly kubeconfig: string | undefined;
  /** Whether the state is kept in the cluster, and by which name of a namespace; its own when that is absent. */
  readonly inCluster: { readonly namespace: string | undefined } | undefined;
  readonly stateDir: string;
  readonly host: string;
  readonly port: number;
  readonly comparisonOperators: boolean;
  readonly log: LogFormat;
  readonly enforce: boolean;
  readonly policyFile: string | undefined;
  readonly historyDays: number;
  /** The port of the console; absent: it is not served. */
  readonly consolePort: number | undefined;
}

/** Where something is served unless told otherwise: any free port. */
const DEFAULT_PORT = 0;
const HIGHEST_PORT = 65_535;

/** Reads the command line. Prints usage or the version and exits for `--help` and `--version`, and with one sentence for what it cannot read. */
export function parseOptions(argv: readonly string[]): StartOptions {
  const command = new Command('npm start --')
    .description(
      'Runs the whole service in this process: evicts the pods of the named clusters that do not tolerate their ' +
        "node's NoExecute taints, or tells what it would evict. With no cluster named, brings up a simulated one to try it on.",
    )
    .version(VERSION)
    .showHelpAfterError('npm start -- --help lists the options; clusters are named by --context.')
    .addOption(
      new Option('--context <name>', 'a context of the kubeconfig to manage; repeat it for more clusters')
        .argParser((name: string, names: readonly string[]) => [...names, name])
        .default([], 'none: a simulated cluster'),
    )
    .option('--kubeconfig <file>', 'where the contexts are (default: $KUBECONFIG, then ~/.kube/config)')
    .option(
      '--in-cluster',
      'keep all in the cluster this process runs in, and manage that: as one of several replicas, of which one leads; ' +
        'with a --context, that cluster from outside',
      false,
    )
    .addOption(
      new Option(
        '--namespace <name>',
        "with --in-cluster, where it is kept (default: the pod's own; from outside: taintward)",
      ).argParser(notEmpty('a namespace')),
    )
    .option(
      '--enforce',
      'evict pods in clusters that have no policy yet; without, those are only observed',
      false,
    )
    .addOption(
      new Option(
        '--policy <file>',
        'a policy document for all these clusters (docs/reference/policy.md); it is applied anew when it changes',
      ).argParser(notEmpty('a file')),
    )
    .addOption(
      new Option('--state <dir>', 'where timed evictions and dead letters are kept')
        .argParser(notEmpty('a directory'))
        .default('.taintward'),
    )
    .addOption(
      new Option('--history-days <number>', 'for so long history and audit are kept')
        .argParser(parseHistoryDays)
        .default(HISTORY_DAYS),
    )
    .addOption(
      new Option('--host <address>', 'where /healthz, /readyz and /metrics are served')
        .argParser(notEmpty('an address of this machine'))
        .default('127.0.0.1'),
    )
    .addOption(
      new Option('--port <number>', 'their port').argParser(parsePort).default(DEFAULT_PORT, 'any free one'),
    )
    .addOption(
      new Option(
        '--console-port <number>',
        'where this machine alone is served the console, which shows what happens and lets it be stopped',
      )
        .argParser(parsePort)
        .default(DEFAULT_PORT, 'any free one; none with --in-cluster'),
    )
    .option('--no-console', 'serve no console')
    .option(
      '--comparison-operators',
      'let tolerations with the operators Lt and Gt match; only for clusters whose API server has the gate ' +
        'TaintTolerationComparisonOperators on',
      false,
    )
    .addOption(
      new Option(
        '--log <format>',
        'text for people, or json: a line of JSON for each event, and nothing else on standard output',
      )
        .choices(LOG_FORMATS)
        .default('text'),
    )
    .allowExcessArguments(false)
    .parse(argv, { from: 'user' });
  const found = command.opts<{
    context: readonly string[];
    kubeconfig?: string;
    inCluster: boolean;
    namespace?: string;
    state: string;
    host: string;
    port: number;
    comparisonOperators: boolean;
    log: LogFormat;
    enforce: boolean;
    policy?: string;
    historyDays: number;
    console: boolean;
    consolePort: number;
  }>();
  if (found.kubeconfig !== undefined && found.context.length === 0) {
    command.error('error: --kubeconfig needs at least one --context NAME: say which cluster to manage');
  }
  if (found.namespace !== undefined && !found.inCluster) {
    command.error('error: --namespace needs --in-cluster: it says where in the cluster all is kept');
  }
  if (found.inCluster && found.context.length > 1) {
    command.error('error: --in-cluster manages one cluster: name one --context at most');
  }
  if (found.inCluster && command.getOptionValueSource('state') === 'cli') {
    command.error('error: --state cannot stand beside --in-cluster, which keeps all in the cluster');
  }
  return {
    contexts: found.context,
    kubeconfig: found.kubeconfig,
    inCluster: found.inCluster ? { namespace: found.namespace } : undefined,
    stateDir: found.state,
    host: found.host,
    port: found.port,
    comparisonOperators: found.comparisonOperators,
    log: found.log,
    enforce: found.enforce,
    policyFile: found.policy,
    historyDays: found.historyDays,
    // A pod's loopback interface is nobody's.
    consolePort: found.console && !found.inCluster ? found.consolePort : undefined,
  };
}

function notEmpty(what: string): (text: string) => string {
  return (text) => {
    if (text === '') throw new InvalidArgumentError(`name ${what}, or leave it out.`);
    return text;
  };
}

function parseHistoryDays(text: string): number {
  const days = Number(text);
  if (!/^\d+$/.test(text) || days < LEAST_HISTORY_DAYS || days > MOST_HISTORY_DAYS) {
    throw new InvalidArgumentError(`give days, from ${LEAST_HISTORY_DAYS} to ${MOST_HISTORY_DAYS}.`);
  }
  return days;
}

function parsePort(text: string): number {
  const port = Number(text);
  if (!/^\d+$/.test(text) || port > HIGHEST_PORT) {
    throw new InvalidArgumentError(`a port is a number from 0 to ${HIGHEST_PORT}.`);
  }
  return port;
}
