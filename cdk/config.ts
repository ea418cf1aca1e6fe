import { Aws, PERMISSIONS_BOUNDARY_CONTEXT_KEY } from 'aws-cdk-lib';
import type { Node } from 'constructs';
import * as z from 'zod';
import { agentClusterSchema, agentNames, agentsPrefix } from '#shared/aws/agent-names.ts';
import { LOCALSTACK_ACCOUNT, notForAccount } from '#shared/aws/localstack.ts';
import { agentIdSchema } from '#shared/state/registry.ts';
import { HISTORY_DAYS, MAX_HISTORY_DAYS, MIN_HISTORY_DAYS } from '#shared/state/stored.ts';
import { parsedJson } from '#shared/text/parsed-json.ts';

/** The prefix of our keys in the CDK context. It distinguishes misspelled keys from the CDK's own. */
const PREFIX = 'taintward:';

/** A configuration that cannot be deployed; the message names the key and the fix. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';
}

/**
 * The memory in MiB that Fargate offers for a task with this vCPU (in 1/1024), as minimum, maximum and step. 512 is an additional
 * value.
 */
const FARGATE_MEMORY: Readonly<Record<number, readonly [from: number, to: number, step: number]>> = {
  256: [1_024, 2_048, 1_024],
  512: [1_024, 4_096, 1_024],
  1024: [2_048, 8_192, 1_024],
  2048: [4_096, 16_384, 1_024],
  4096: [8_192, 30_720, 1_024],
  8192: [16_384, 61_440, 4_096],
  16384: [32_768, 122_880, 8_192],
};
const SMALLEST_FARGATE = { cpu: 256, memoryMiB: 512 };

/** Values on the command line (`-c key=value`) are text; commas separate the items of a list. */
const count = (from: number, to: number) => {
  const error = `must be a whole number from ${from} to ${to}`;
  return z.coerce.number(error).int(error).min(from, error).max(to, error);
};
const flag = z.union([z.boolean(), z.enum(['true', 'false']).transform((value) => value === 'true')], {
  error: 'must be true or false',
});
const list = (item: z.ZodType<string>, max = Number.POSITIVE_INFINITY) =>
  z.preprocess(
    (value) => (typeof value === 'string' ? value.split(',') : value),
    z.array(item).min(1).max(max, `must have at most ${max} entries`),
  );
const matching = (pattern: RegExp, example: string) =>
  z.string(`must be text like ${example}`).regex(pattern, `must look like ${example}`);

const secretNames = list(matching(/^[\w/+=.@-]+\*?$/, 'taintward/*'));
const roleArns = list(
  matching(/^arn:[^:]+:iam::(\d{12}|\*):role\/.+$/, 'arn:aws:iam::*:role/taintward-access'),
);
/** IAM limits the size of a policy. */
const MAX_SECRET_KEYS = 40;
const topicArn = matching(/^arn:[^:]+:sns:[^:]+:\d{12}:.+$/, 'arn:aws:sns:eu-west-1:123456789012:ops');
/** Roles of all accounts, before the pattern of their names. */
export const ALL_ROLES = `arn:${Aws.PARTITION}:iam::*:role/`;

const kmsKeyArn = matching(
  /^arn:[^:]+:kms:[^:]+:\d{12}:key\/.+$/,
  'arn:aws:kms:eu-west-1:123456789012:key/1234abcd-12ab-34cd-56ef-1234567890ab',
);

/** A relay that the user runs, and that follows some clusters only. */
const ownRelay = z.strictObject({
  /** The names of its clusters, without commas and without pattern characters of IAM; `*` at the end matches a prefix. */
  clusters: list(matching(/^[!"%-)+\x2d->@-~]+\*?$/, 'edge-1 or edge-*')),
  /** Replaces the setting that all relays share. */
  clusterRoles: roleArns.exactOptional(),
  kubeconfigSecrets: secretNames.exactOptional(),
});

/** IAM's maximum length of a role name, and the longest name of a region, which names of agents' roles contain. */
const MAX_ROLE_NAME_CHARACTERS = 64;
const LONGEST_REGION = 'ap-southeast-1';

/** A name in the format of a DNS label or subdomain, as in Kubernetes. IAM would interpret slashes and colons in comparisons. */
const kubernetesName = matching(/^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$/, 'taintward-agent');

/** An agent, which is relay and evictor of the cluster that it runs in, and its identity. */
const agent = z
  .strictObject({
    cluster: z.string('must be the name that the cluster is registered by').pipe(agentClusterSchema),
    namespace: kubernetesName.default('taintward'),
    serviceAccount: kubernetesName.default('taintward-agent'),
    /**
     * The role is for the agent's pods in an EKS cluster of this account. Several ARNs are allowed while one cluster replaces
     * another.
     */
    podIdentity: z
      .strictObject(
        {
          clusterArns: list(
            matching(
              /^arn:[^:]+:eks:[^:]+:\d{12}:cluster\/[\w-]{1,100}$/,
              'arn:aws:eks:eu-west-1:123456789012:cluster/prod',
            ),
          ),
        },
        'must be like {"clusterArns": "arn:aws:eks:…"}',
      )
      .exactOptional(),
    /**
     * The role is for the agent's service account, by tokens of a cluster whose issuer is registered with IAM in this account.
     */
    irsa: z
      .strictObject(
        {
          oidcProvider: matching(
            /^arn:[^:]+:iam::\d{12}:oidc-provider\/[\w.-]+(\/[\w./-]+)?$/,
            'arn:aws:iam::123456789012:oidc-provider/oidc.eks.eu-west-1.amazonaws.com/id/EXAMPLE',
          ),
        },
        'must be like {"oidcProvider": "arn:aws:iam::…"}',
      )
      .exactOptional(),
  })
  .refine(({ podIdentity, irsa }) => podIdentity === undefined || irsa === undefined, {
    path: ['irsa'],
    error: 'must not be set together with podIdentity: an agent gets its role in one way',
  });

const schema = z
  .strictObject({
    name: z
      .string('must be text like taintward')
      .regex(
        /^[a-z][a-z0-9-]{0,30}$/,
        'must have only lowercase letters, digits, and hyphens, begin with a letter, and have at most 31 characters, for example taintward-prod',
      )
      .refine(
        (name) => !`${name}-`.includes(agentsPrefix('')),
        "must not contain -agent: that begins the names of agents' resources",
      )
      .default('taintward'),
    relay: z.enum(['fargate', 'external'], 'must be fargate or external').default('fargate'),
    relays: z
      .preprocess(
        parsedJson,
        z.record(
          matching(/^[a-z][a-z0-9]{0,15}$/, 'edge'),
          ownRelay,
          'must be like {"edge": {"clusters": ["edge-*"]}}',
        ),
      )
      .exactOptional(),
    agents: z
      .preprocess(parsedJson, z.record(agentIdSchema, agent, 'must be like {"edge-1": {"cluster": "prod"}}'))
      .exactOptional(),
    relayCount: count(1, 20).default(2),
    relayMemoryMiB: count(512, 122_880).default(SMALLEST_FARGATE.memoryMiB),
    relayImage: matching(
      /^[a-z0-9][a-z0-9.-]*(:\d{1,5})?(\/[a-z0-9][a-z0-9._-]*)+@sha256:[0-9a-f]{64}$/,
      'ghcr.io/taintward/taintward@sha256:… with all 64 digits',
    ).exactOptional(),
    vpcId: matching(/^vpc-[0-9a-f]+$/, 'vpc-0123456789abcdef0').exactOptional(),
    subnetIds: list(matching(/^subnet-[0-9a-f]+$/, 'subnet-0123456789abcdef0'))
      .refine(({ length }) => length > 1, 'must have at least two subnets, in different zones')
      .exactOptional(),
    staticEgressIps: flag.default(false),
    alarmTopicArn: topicArn.exactOptional(),
    warningTopicArn: topicArn.exactOptional(),
    alarmEmail: matching(/^[^\s@]+@[^\s@]+\.[^\s@]+$/, 'ops@example.com').exactOptional(),
    eventBus: matching(
      /^(arn:[^:]+:events:[^:]+:\d{12}:event-bus\/)?[\w.-]{1,256}$/,
      'default or arn:aws:events:eu-west-1:123456789012:event-bus/ops',
    ).exactOptional(),
    historyDays: count(MIN_HISTORY_DAYS, MAX_HISTORY_DAYS).default(HISTORY_DAYS),
    retainTable: flag.default(true),
    kmsKeyArn: kmsKeyArn.exactOptional(),
    concurrency: count(2, 1000).default(50),
    kubeconfigSecrets: secretNames.default(['taintward/*']),
    secretKmsKeys: list(kmsKeyArn, MAX_SECRET_KEYS).exactOptional(),
    clusterRoles: roleArns.default([`${ALL_ROLES}taintward-access*`]),
    organization: matching(/^o-[a-z0-9]{10,32}$/, 'o-a1b2c3d4e5').exactOptional(),
    metricsByCluster: flag.default(false),
    comparisonOperators: flag.default(false),
    endpoint: z.enum(['aws', 'localstack'], 'must be aws or localstack').default('aws'),
  })
  .refine(({ endpoint, relay }) => endpoint === 'aws' || relay === 'external', {
    path: ['relay'],
    error:
      'must be external, or not set, beside taintward:endpoint=localstack, which runs no containers for the stack',
  })
  .refine(({ relay, relayMemoryMiB }) => relay !== 'fargate' || fargateCpu(relayMemoryMiB) !== undefined, {
    path: ['relayMemoryMiB'],
    error: 'must be an amount that Fargate offers: 512, a multiple of 1024 up to 30720, or of 4096 above',
  })
  .refine(({ relay, relays }) => relays === undefined || relay === 'external', {
    path: ['relays'],
    error: 'requires taintward:relay=external, because relays in the stack manage all clusters',
  })
  .refine(({ relay, relayImage }) => relayImage === undefined || relay === 'fargate', {
    path: ['relayImage'],
    error: 'requires taintward:relay=fargate, because you choose the image of relays outside the stack',
  })
  .refine(({ agents = {} }) => new Set(clustersOf(agents)).size === Object.keys(agents).length, {
    path: ['agents'],
    error: 'must name each cluster once, because a cluster has one agent',
  })
  .refine(({ name, agents = {} }) => Object.keys(agents).every((id) => id.length <= charactersOfId(name)), {
    path: ['agents'],
    error: `has an ID that is too long. The ID and taintward:name can have ${charactersOfId('')} characters together`,
  })
  .refine(({ vpcId, subnetIds }) => (vpcId === undefined) === (subnetIds === undefined), {
    path: ['vpcId'],
    error: 'requires taintward:subnetIds, and is required by it. Specify both or neither',
  })
  .refine(({ vpcId, staticEgressIps }) => vpcId === undefined || !staticEgressIps, {
    path: ['staticEgressIps'],
    error: 'is mutually exclusive with taintward:vpcId. Your own VPC uses the addresses of its NAT gateways',
  });

export type OwnRelay = z.output<typeof ownRelay>;
export type AgentConfig = z.output<typeof agent>;

export type Config = z.output<typeof schema>;

/** The purpose of each key, as printed on the page of settings. */
export const PURPOSES: Readonly<Record<keyof typeof schema.shape, string>> = {
  name: 'Name of the stack and its resources. Two installations in one account and region need two names.',
  relay: 'fargate: the stack runs the relays. external: you run them.',
  relays: 'With relay external: relays by name that manage some clusters alone, each with its own policy.',
  agents: 'Agents by ID, each with its own stack, cluster, and identity.',
  relayCount: 'Number of relays. With two or more, a failed relay is replaced within seconds.',
  relayMemoryMiB:
    'Memory of a relay, which Fargate runs with the least CPU that it offers for it. Its capacity is 40 nodes per MiB; a cluster counts as 100 more nodes.',
  relayImage:
    'Image of the relays, by digest: a released one, or a copy in ECR. It must be of the deployed release, and needs no Docker for the deployment. Default: built during the deployment.',
  vpcId:
    'VPC of relays and evict, if clusters are reachable only from a VPC. Default: a small VPC for the relays.',
  subnetIds: 'Private subnets of that VPC, in two zones, with routes to the clusters and to the AWS APIs.',
  staticEgressIps:
    'Whether relays and evict use static addresses, behind a NAT gateway in each of two zones, for clusters with an allow-list. Some $73 a month.',
  alarmTopicArn: 'Your SNS topic for the alarm that may wake somebody, and without another topic for all.',
  warningTopicArn: 'Your SNS topic for all other alarms, and without another topic for all.',
  alarmEmail: 'Email address for all alarms. Its owner must confirm an email from AWS first.',
  eventBus: 'Name or ARN of an EventBridge bus for notifications about evictions.',
  historyDays:
    'Retention of history and audit log, in days. The table has it as the tag taintward:history-days, because commands write the audit log.',
  retainTable:
    'Whether the table survives cdk destroy, only a deployment may delete it, and the stack has termination protection.',
  kmsKeyArn:
    'KMS key of this account and region for the table, queues, logs, and the topic of alarmEmail. Its policy must permit this first.',
  concurrency:
    'Number of concurrent batches of node-delta, pod-delta, and evict each. A batch of evict may send as many requests to API servers as it has pods to evict.',
  kubeconfigSecrets:
    'Secrets with kubeconfigs, for both relay and evict. A name may end with *. Only relays may read taintward-relay/*, and only evict taintward-evict/*.',
  secretKmsKeys:
    'ARNs of the KMS keys of these secrets, if they are not encrypted with the key of Secrets Manager. Relays and evict may use them through Secrets Manager only.',
  clusterRoles:
    'Roles that both relay and evict may assume for access to clusters. An ARN may end with *, and have * as its account. Only relays may assume roles named taintward-relay*, and only evict taintward-evict*.',
  organization: 'ID of your AWS organization: then only roles of its accounts are assumed.',
  metricsByCluster:
    'Whether CloudWatch has the metrics of evict by cluster, with graphs in the dashboard: up to $2.40 a month for each cluster.',
  comparisonOperators:
    'Whether the toleration operators Lt and Gt match, like the feature gate TaintTolerationComparisonOperators of your clusters.',
  endpoint:
    'localstack: the stack is for LocalStack, where it runs no relay. cdk and the deployed components reject it in any account but 000000000000.',
};

export function defaultOf(key: keyof typeof schema.shape): string | undefined {
  const value: unknown = schema.shape[key].safeParse(undefined).data;
  if (value === undefined) return undefined;
  // The partition is only known during a deployment.
  return [value].flat().join(', ').replaceAll(Aws.PARTITION, 'aws');
}

/** The defaults that one key sets for others. */
const impliedBy = ({ endpoint }: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> =>
  endpoint === 'localstack' ? { relay: 'external' } : {};

/**
 * Reads the configuration: the keys of the CDK context that start with `taintward:`, from `cdk.json` or the command line.
 * `account` and `region`: the target of the deployment, if the CDK provides it. Throws `ConfigError`.
 */
export function readConfig(
  node: Node,
  account = process.env['CDK_DEFAULT_ACCOUNT'],
  region = process.env['CDK_DEFAULT_REGION'],
): Config {
  const config = parsed(node);
  if (config.endpoint === 'localstack' && (account ?? LOCALSTACK_ACCOUNT) !== LOCALSTACK_ACCOUNT)
    throw new ConfigError(
      `The context key ${PREFIX}endpoint cannot be used: ${notForAccount(account ?? '')}.`,
    );
  const arns = Object.values(config.agents ?? {}).flatMap(
    ({ podIdentity }) => podIdentity?.clusterArns ?? [],
  );
  const foreign = arns.find((arn) => arn.split(':')[4] !== account);
  if (account !== undefined && foreign !== undefined)
    throw new ConfigError(
      `The context key ${PREFIX}agents (podIdentity.clusterArns) names ${foreign}, but EKS Pod Identity gives roles of account ${account} to its own clusters only. Use irsa.`,
    );
  for (const key of ['alarmTopicArn', 'warningTopicArn', 'eventBus', 'kmsKeyArn'] as const) {
    const [, , , given] = config[key]?.split(':') ?? [];
    if (region && given && given !== region)
      throw new ConfigError(`The context key ${PREFIX}${key} must be in the stack's region, ${region}.`);
  }
  return config;
}

function parsed(node: Node): Config {
  const context: Record<string, unknown> = node.getAllContext();
  for (const key of Object.keys(context)) refuseWithoutPrefix(key);
  if (typeof context[PERMISSIONS_BOUNDARY_CONTEXT_KEY] === 'string')
    throw new ConfigError(
      `The context key ${PERMISSIONS_BOUNDARY_CONTEXT_KEY} is ignored on the command line. Set it in cdk.context.json.`,
    );
  const ours = Object.entries(context)
    .filter(([key]) => key.startsWith(PREFIX))
    .map(([key, value]) => [key.slice(PREFIX.length), value]);
  const given = Object.fromEntries(ours);
  const found = schema.safeParse({ ...impliedBy(given), ...given });
  if (found.success) return found.data;
  const [issue] = found.error.issues;
  const [key, ...within] = (issue?.path ?? []).filter((part) => typeof part === 'string');
  if (issue?.code === 'unrecognized_keys' && key === undefined) {
    const known = Object.keys(schema.shape).join(', ');
    throw new ConfigError(`The context key ${PREFIX}${issue.keys[0]} is unknown. Specify one of: ${known}.`);
  }
  const where = within.length > 0 ? ` (${within.join('.')})` : '';
  const fault =
    issue?.code === 'unrecognized_keys' ? `has an unknown setting ${issue.keys[0]}` : issue?.message;
  throw new ConfigError(`The context key ${PREFIX}${key}${where} ${fault}.`);
}

/** Rejects settings without their prefix, which the CDK would ignore silently. Throws `ConfigError`. */
function refuseWithoutPrefix(key: string): void {
  if (key.startsWith(PREFIX)) return;
  const name = key.replace(/^taintward[^a-z]*/i, '');
  if (!Object.hasOwn(schema.shape, name)) return;
  throw new ConfigError(
    `The context key ${key} lacks the prefix ${PREFIX}, so it would be ignored: use ${PREFIX}${name}.`,
  );
}

export function fargateCpu(memoryMiB: number): number | undefined {
  if (memoryMiB === SMALLEST_FARGATE.memoryMiB) return SMALLEST_FARGATE.cpu;
  const offered = Object.entries(FARGATE_MEMORY).find(
    ([, [from, to, step]]) => memoryMiB >= from && memoryMiB <= to && memoryMiB % step === 0,
  );
  return offered && Number(offered[0]);
}

const clustersOf = (agents: Readonly<Record<string, AgentConfig>>): readonly string[] =>
  Object.values(agents).map(({ cluster }) => cluster);

function charactersOfId(name: string): number {
  return MAX_ROLE_NAME_CHARACTERS - agentNames(agentsPrefix(name), '', LONGEST_REGION).scheduleRole.length;
}
