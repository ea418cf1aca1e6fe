import * as z from 'zod';
import { clusterGrantsSchema } from '#shared/access/cluster-grants.ts';
import type { ProbeAddress } from '#shared/engine/clusters/probe-server.ts';
import { agentIdSchema } from '#shared/state/registry.ts';
import { parsedJson } from '#shared/text/parsed-json.ts';
import { agentClusterSchema } from './agent-names.ts';
import { accountOf, endpointSchema, LOCALSTACK_ACCOUNT, notForAccount } from './localstack.ts';

/** The environment of a process is invalid. The message names the variable and the fix. */
export class EnvironmentError extends Error {
  override readonly name = 'EnvironmentError';
}

/** Returns the variables that a process needs, validated once at its start. Throws `EnvironmentError`. */
export function readEnvironment<T>(
  schema: z.ZodType<T>,
  variables: Readonly<Record<string, string | undefined>>,
): T {
  const found = schema.safeParse(variables);
  if (found.success) return found.data;
  const [issue] = found.error.issues;
  const name = String(issue?.path[0]);
  const fault = variables[name] === undefined ? 'is not set' : `cannot be used (${issue?.message})`;
  throw new EnvironmentError(
    `The environment variable ${name} ${fault}: the stack sets it for everything it deploys, and prints it for a relay of your own.`,
  );
}

/*
 * The environment variables of deployed processes, grouped by the access they give. A process with that access gets
 * exactly these.
 */

const text = z.string().min(1, 'is empty');
const flag = z.enum(['true', 'false'], 'must be true or false').transform((value) => value === 'true');

/** The table: store, leases and cluster registry. */
export const tableVariables = { TABLE_NAME: text };

export const historyVariables = { HISTORY_DAYS: z.coerce.number('must be a number').int().positive() };

/** The queues to which the relay sends deltas. */
export const deltaQueueVariables = { NODE_DELTAS_URL: z.url(), POD_DELTAS_URL: z.url() };

/** The queue from which a function receives messages. */
export const sourceVariables = { SOURCE_QUEUE_URL: z.url() };

/** The queue for messages that are unreadable or were rejected. */
export const deadLetterVariables = { DEAD_LETTER_QUEUE_URL: z.url() };

/** `evictions-due`. */
export const dueQueueVariables = { EVICTIONS_DUE_URL: z.url() };

/** The variables that timers need besides `evictions-due` itself. */
export const timerVariables = {
  EVICTIONS_DUE_ARN: text,
  SCHEDULE_GROUP_NAME: text,
  SCHEDULE_ROLE_ARN: text,
};

/** The prefix of the names of all agents' resources, including their queues of due messages. */
export const agentsVariables = { AGENT_PREFIX: text };

/** How tolerations are matched. */
export const matchingVariables = { COMPARISON_OPERATORS: flag };

/** The installation's name, for other installations that share a cluster with it. */
export const installationVariables = { INSTALLATION_NAME: text };

export const metricVariables = { METRIC_NAMESPACE: text };

/** `true`: values of a cluster are also metrics of that cluster. */
export const clusterMetricVariables = { METRICS_BY_CLUSTER: flag };

/** The secrets and roles that IAM lets the relays and `evict` use, as JSON. */
export const clusterGrantsVariables = {
  CLUSTER_GRANTS: z.preprocess(parsedJson, clusterGrantsSchema),
};

/** The event bus that receives notices about evictions. Absent: none. */
export const noticeVariables = { EVENT_BUS: text.exactOptional() };

/** Set where LocalStack replaces AWS: its SQS reports the account as every sender. Only for LocalStack's account. */
export const endpointVariables = { ENDPOINT: endpointSchema.exactOptional() };

/** The parsed values of a group of variables. */
export type Variables<Group extends z.ZodRawShape> = z.output<z.ZodObject<Group>>;

/** The values for a group of variables. The compiler reports each missing one. */
export type ValuesOf<Variables> = { readonly [Name in keyof Variables]: string };

const namedAccount = { ...timerVariables, ...endpointVariables };

/** Rejects an environment that is for LocalStack but names a queue of another account. */
function forItsAccount<Shape extends z.ZodRawShape & typeof namedAccount>(shape: Shape): z.ZodObject<Shape> {
  return z.object(shape).check((context) => {
    const { ENDPOINT, EVICTIONS_DUE_ARN } = context.value as Variables<typeof namedAccount>;
    const account = accountOf(EVICTIONS_DUE_ARN);
    if (ENDPOINT === undefined || account === LOCALSTACK_ACCOUNT) return;
    context.issues.push({
      code: 'custom',
      path: ['ENDPOINT'],
      input: ENDPOINT,
      message: notForAccount(account),
    });
  });
}

/** The environment of both delta functions. */
export const deltaEnvironment = forItsAccount({
  ...endpointVariables,
  ...tableVariables,
  ...historyVariables,
  ...sourceVariables,
  ...deadLetterVariables,
  ...dueQueueVariables,
  ...agentsVariables,
  ...timerVariables,
  ...matchingVariables,
  ...noticeVariables,
});

export const evictEnvironment = forItsAccount({
  ...deltaEnvironment.shape,
  ...metricVariables,
  ...clusterMetricVariables,
  ...installationVariables,
  ...clusterGrantsVariables,
});

export const expiryEnvironment = z.object({
  ...tableVariables,
  ...dueQueueVariables,
  ...agentsVariables,
  ...deadLetterVariables,
});

export const heartbeatEnvironment = z.object({ ...tableVariables, ...metricVariables });

/** The port at which Fargate and Kubernetes probe the relay by default. */
export const PROBE_PORT = 8080;

/** Nodes for each MiB of a relay's memory. Half of the memory is left for storms and a neighbor's clusters. */
export const NODES_PER_MIB = 40;

/** The only clusters that a relay follows: names, or name prefixes followed by `*`. Absent: all. */
export const followedVariables = {
  CLUSTERS: text.transform((list) => list.split(',').map((name) => name.trim())).exactOptional(),
};

/** The address at which `/healthz`, `/readyz` and `/metrics` are served. */
const probeVariables = {
  PROBE_HOST: z.string().min(1).default('0.0.0.0'),
  PROBE_PORT: z.coerce.number('must be a port').int().min(0).max(65_535).default(PROBE_PORT),
};

/** Returns the address of the probes, which names its variables in errors. */
export const probeAddress = ({ PROBE_HOST, PROBE_PORT }: Variables<typeof probeVariables>): ProbeAddress => ({
  host: PROBE_HOST,
  port: PROBE_PORT,
  setBy: { host: 'PROBE_HOST', port: 'PROBE_PORT' },
});

export const relayEnvironment = z.object({
  ...endpointVariables,
  ...tableVariables,
  ...deltaQueueVariables,
  ...metricVariables,
  ...followedVariables,
  /** Absent: the relay cannot detect another installation that evicts in a cluster. */
  INSTALLATION_NAME: text.exactOptional(),
  /** Nodes that the relay accepts while other relays can take the rest. Default: the capacity for 512 MiB. */
  NODE_CAPACITY: z.coerce
    .number('must be a number')
    .int()
    .positive()
    .default(512 * NODES_PER_MIB),
  ...probeVariables,
});

export const agentVariables = { AGENT: agentIdSchema, CLUSTER: agentClusterSchema };

/** The environment of an agent. Its queue of due messages, schedules and dead letters are its own. */
export const agentEnvironment = forItsAccount({
  ...endpointVariables,
  ...agentVariables,
  ...tableVariables,
  ...historyVariables,
  ...deltaQueueVariables,
  ...dueQueueVariables,
  ...timerVariables,
  ...deadLetterVariables,
  ...matchingVariables,
  ...installationVariables,
  ...probeVariables,
});
