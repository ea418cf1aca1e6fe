import { Command, InvalidArgumentError, Option } from 'commander';
import { agentEnvironment } from '#shared/aws/environment.ts';
import { environmentText, environmentVariables } from '#shared/aws/environment-text.ts';
import { VERSION } from '#shared/version.ts';

/** Select the cluster if the agent doesn't run as a pod of the cluster. */
export interface AgentOptions {
  readonly context: string | undefined;
  readonly kubeconfig: string | undefined;
}

const PURPOSES: Readonly<Record<keyof typeof agentEnvironment.shape, string>> = {
  AGENT: "agent ID in the cluster's registration",
  CLUSTER: 'name of the registered cluster',
  TABLE_NAME: "the stack's table",
  HISTORY_DAYS: 'days for which the history of evictions is kept',
  NODE_DELTAS_URL: 'URL of the queue for node deltas',
  POD_DELTAS_URL: 'URL of the queue for pod deltas',
  EVICTIONS_DUE_URL: "URL of the agent's queue of due evictions",
  EVICTIONS_DUE_ARN: 'ARN of that queue',
  SCHEDULE_GROUP_NAME: 'schedule group of its schedules',
  SCHEDULE_ROLE_ARN: 'role with which the schedules send to the queue',
  DEAD_LETTER_QUEUE_URL: 'URL of the dead-letter queue',
  COMPARISON_OPERATORS: 'whether tolerations with Lt and Gt match: true or false',
  ENDPOINT: 'localstack, where LocalStack is in place of AWS; refused in a real account',
  INSTALLATION_NAME: 'installation name, shown to others that share the cluster',
  PROBE_HOST: 'address for /healthz, /readyz and /metrics',
  PROBE_PORT: 'port for them',
};

export const AGENT_VARIABLES = environmentVariables(agentEnvironment, PURPOSES);

/** `--help` and `--version` print their text and exit. Invalid usage prints one sentence and exits. */
export function parseOptions(argv: readonly string[]): AgentOptions {
  const command = new Command('npm run agent --')
    .description(
      'Runs the agent of one cluster until it is asked to stop: relay and evictor, in the cluster, with the ' +
        "pod's service account. Start two; the second stands by as relay, and both evict.",
    )
    .version(VERSION)
    .addOption(
      new Option(
        '--context <name>',
        'reach the cluster by this context of a kubeconfig: from outside, for trying',
      ).argParser(notEmpty('a context')),
    )
    .addOption(
      new Option(
        '--kubeconfig <file>',
        'with --context: the file (default: $KUBECONFIG, then ~/.kube/config)',
      ).argParser(notEmpty('a file')),
    )
    .addHelpText(
      'after',
      `\nEnvironment, which the agent's stack prints:\n${environmentText(AGENT_VARIABLES)}`,
    )
    .parse(argv, { from: 'user' });
  const { context, kubeconfig } = command.opts<{ context?: string; kubeconfig?: string }>();
  if (kubeconfig !== undefined && context === undefined)
    command.error('error: --kubeconfig needs --context NAME: name the context of the cluster');
  return { context, kubeconfig };
}

function notEmpty(what: string): (text: string) => string {
  return (text) => {
    if (text === '') throw new InvalidArgumentError(`name ${what}, or leave it out.`);
    return text;
  };
}
