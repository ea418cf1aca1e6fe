import * as z from 'zod';
import { agentIdSchema } from '#shared/state/registry.ts';
import { agentClusterSchema } from './agent-names.ts';
import { accountOf, endpointSchema, LOCALSTACK_ACCOUNT, notForAccount } from './localstack.ts';

/** A process was started with an environment it cannot work with; the message names the variable and the fix. */
export class EnvironmentError extends Error {
  override readonly name = 'EnvironmentError';
}

/** What a process reads from its environment, checked once at its start. Throws `EnvironmentError`. */
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
 * The environment variables of what is deployed, by what they give access to. Whoever is granted that access is given
 * exactly these.
 */

const text = z.string().min(1, 'is empty');
const flag = z.enum(['true', 'false'], 'must be true or false').transform((value) => value === 'true');

/** The table: store, leases and cluster registry. */
export const tableVariables = { TABLE_NAME: text };

/** For how many days what became of evictions is kept. */
export const historyVariables = { HISTORY_DAYS: z.coerce.number('must be a number').int().positive() };

/** The queues the relay sends deltas to. */
export const deltaQueueVariables = { NODE_DELTAS_URL: z.url(), POD_DELTAS_URL: z.url() };

/** The queue a function's messages come from. */
export const sourceVariables = { SOURCE_QUEUE_URL: z.url() };

/** Where a function sets aside what nobody can read. */
export const deadLetterVariables = { DEAD_LETTER_QUEUE_URL: z.url() };

/** `evictions-due`. */
export const dueQueueVariables = { EVICTIONS_DUE_URL: z.url() };

/** What arming timers takes besides `evictions-due` itself. */
export const timerVariables = {
  EVICTIONS_DUE_ARN: text,
  SCHEDULE_GROUP_NAME: text,
  SCHEDULE_ROLE_ARN: text,
};

/** What the names begin with of all that agents have, their queues of what is due among it. */
export const agentsVariables = { AGENT_PREFIX: text };

/** How tolerations are matched. */
export const matchingVariables = { COMPARISON_OPERATORS: flag };

/** Names the installation, to those who share a cluster with it. */
export const installationVariables = { INSTALLATION_NAME: text };

/** Under which namespace CloudWatch shows the metrics. */
export const metricVariables = { METRIC_NAMESPACE: text };

/** Whether what is counted of a cluster is also a metric of that cluster. */
export const clusterMetricVariables = { METRICS_BY_CLUSTER: flag };

/** The event bus that is told what becomes of evictions; absent: none. */
export const noticeVariables = { EVENT_BUS: text.exactOptional() };

/**
 * Set where LocalStack is in place of AWS: its SQS names the account as the sender of every message. Whoever reads it refuses to
 * work in any account but LocalStack's.
 */
export const endpointVariables = { ENDPOINT: endpointSchema.exactOptional() };

/** A group of variables as it is read. */
export type Variables<Group extends z.ZodRawShape> = z.output<z.ZodObject<Group>>;

/** The values for a group of variables; tells the compiler of any that is forgotten. */
export type ValuesOf<Variables> = { readonly [Name in keyof Variables]: string };

const namedAccount = { ...timerVariables, ...endpointVariables };

/** Has an environment refused that is for LocalStack, and names a queue of another account. */
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

/** What both delta functions read from their environment. */
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

/** What `evict` reads from its environment. */
export const evictEnvironment = forItsAccount({
  ...deltaEnvironment.shape,
  ...metricVariables,
  ...clusterMetricVariables,
  ...installationVariables,
});

/** What `expiry` reads from its environment. */
export const expiryEnvironment = z.object({
  ...tableVariables,
  ...dueQueueVariables,
  ...agentsVariables,
  ...deadLetterVariables,
});

/** What `heartbeat` reads from its environment. */
export const heartbeatEnvironment = z.object({ ...tableVariables, ...metricVariables });

/** Where Fargate and Kubernetes look for the relay's probes unless told otherwise. */
export const PROBE_PORT = 8080;

/** Nodes for each MiB of a relay's memory; half of it is left for storms, and for a neighbour's clusters. */
export const NODES_PER_MIB = 40;

/** The only clusters that a relay follows: names, and beginnings of names with `*` behind them; absent: all. */
export const followedVariables = {
  CLUSTERS: text.transform((list) => list.split(',')).exactOptional(),
};

/** Where `/healthz`, `/readyz` and `/metrics` are served. */
const probeVariables = {
  PROBE_HOST: z.string().min(1).default('0.0.0.0'),
  PROBE_PORT: z.coerce.number('must be a port').int().min(0).max(65_535).default(PROBE_PORT),
};

/** What the relay reads from its environment. */
export const relayEnvironment = z.object({
  ...endpointVariables,
  ...tableVariables,
  ...deltaQueueVariables,
  ...metricVariables,
  ...followedVariables,
  /** Absent: it cannot tell whether another installation evicts in a cluster. */
  INSTALLATION_NAME: text.exactOptional(),
  /** How many nodes it takes on while other relays are there to take the rest. Default: that of 512 MiB. */
  NODE_CAPACITY: z.coerce
    .number('must be a number')
    .int()
    .positive()
    .default(512 * NODES_PER_MIB),
  ...probeVariables,
});

/** Which agent it is, and the one cluster that it is for. */
export const agentVariables = { AGENT: agentIdSchema, CLUSTER: agentClusterSchema };

/** What an agent reads from its environment; the queue of what is due, its schedules and dead letters are its own. */
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
