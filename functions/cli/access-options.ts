import { resolve } from 'node:path';
import type { Command } from 'commander';
import { defined } from '#shared/defined.ts';
import { UsageError } from '#shared/operations/fleet/fleet.ts';
import {
  type Access,
  type AssumedRole,
  agentIdSchema,
  type ByPart,
  type EksAccess,
  roleArn,
  secretArn,
} from '#shared/state/registry.ts';
import { kubeconfigOption } from './command.ts';

/** The options of each way to access a cluster: those that select it, and those that go with them. */
const WAYS = [
  { kind: 'eks', by: ['eks'], with: ['region', 'roleArn', 'relayRoleArn', 'evictRoleArn', 'externalId'] },
  {
    kind: 'kubeconfig-secret',
    by: ['kubeconfigSecret', 'relayKubeconfigSecret', 'evictKubeconfigSecret'],
    with: ['context'],
  },
  { kind: 'local-context', by: ['context'], with: ['kubeconfig'] },
  { kind: 'agent', by: ['agent'], with: [] },
] as const;
type Way = (typeof WAYS)[number];
type Name = Way['by' | 'with'][number];

export type AccessOptions = { readonly [N in Name]?: string };

const namesOf = ({ by: selecting, with: others }: Way): readonly Name[] => [...selecting, ...others];

export function addAccessOptions(command: Command): Command {
  return command
    .option('--eks <cluster>', 'EKS cluster name; access by IAM')
    .option('--region <region>', 'AWS Region of the EKS cluster, for example eu-west-1')
    .option('--role-arn <arn>', 'IAM role to assume, for an EKS cluster in another account')
    .option(
      '--relay-role-arn <arn>',
      'IAM role of the relay, which lists and watches (instead of --role-arn)',
    )
    .option('--evict-role-arn <arn>', 'IAM role of evict, which deletes pods (with --relay-role-arn)')
    .option('--external-id <id>', 'External ID that the role requires')
    .option('--kubeconfig-secret <arn>', 'secret in AWS Secrets Manager that holds a kubeconfig')
    .option(
      '--relay-kubeconfig-secret <arn>',
      'secret with the kubeconfig of the relay (instead of --kubeconfig-secret)',
    )
    .option(
      '--evict-kubeconfig-secret <arn>',
      'secret with the kubeconfig of evict (with --relay-kubeconfig-secret)',
    )
    .option('--context <name>', 'kubeconfig context (default: the current context)')
    .addOption(kubeconfigOption())
    .option('--agent <id>', 'ID of the agent that runs in the cluster; no other access is needed');
}

/** Returns the access that the flags define. Throws `UsageError` if they don't define exactly one. */
export function parseAccess(options: AccessOptions): Access {
  const { kind } = wayOf(options);
  const { eks = '', context = '', kubeconfig, agent = '' } = options;
  switch (kind) {
    case 'eks':
      return { kind, clusterName: eks, region: regionOf(options), ...roleOf(options) };
    case 'kubeconfig-secret':
      return { kind, secretArn: secretOf(options), ...(context && { context }) };
    case 'local-context':
      return { kind, context, ...(kubeconfig && { kubeconfig: resolve(kubeconfig) }) };
    case 'agent':
      return { kind, agent: agentIdOf(agent) };
    default:
      return kind satisfies never;
  }
}

function wayOf(options: AccessOptions): Way {
  const way = WAYS.find(({ by }) => by.some((name) => options[name] !== undefined));
  if (way === undefined) {
    throw new UsageError(
      'Missing cluster access. Specify --eks NAME --region REGION, --kubeconfig-secret ARN, --context NAME, or --agent ID.',
    );
  }
  for (const name of WAYS.flatMap(namesOf)) {
    if (options[name] === '')
      throw new UsageError(`${flagOf(name)} must not be empty. Specify a value, or omit the option.`);
    if (options[name] !== undefined && !namesOf(way).includes(name)) {
      throw new UsageError(`${flagOf(name)} and ${flagOf(way.by[0])} are mutually exclusive. Specify one.`);
    }
  }
  return way;
}

function regionOf({ region }: AccessOptions): string {
  if (region) return region;
  throw new UsageError('--eks requires --region, the AWS region of the cluster.');
}

function agentIdOf(agent: string): string {
  const { data, error } = agentIdSchema.safeParse(agent);
  if (data !== undefined) return data;
  throw new UsageError(`--agent ${error.issues[0]?.message}.`);
}

function roleOf(options: AccessOptions): Pick<EksAccess, 'role'> {
  const { externalId } = options;
  const role = byPart(options, ['roleArn', 'relayRoleArn', 'evictRoleArn'], (arn, flag): AssumedRole => {
    if (roleArn.safeParse(arn).success) return { arn, ...(externalId && { externalId }) };
    throw new UsageError(
      `${flag} is not the ARN of a role. Specify one like arn:aws:iam::ACCOUNT:role/NAME.`,
    );
  });
  if (role === undefined && externalId !== undefined)
    throw new UsageError('--external-id requires --role-arn, the role that is assumed with it.');
  return defined({ role });
}

function secretOf(options: AccessOptions): ByPart<string> {
  const names = ['kubeconfigSecret', 'relayKubeconfigSecret', 'evictKubeconfigSecret'] as const;
  const secret = byPart(options, names, (arn, flag) => {
    if (secretArn.safeParse(arn).success) return arn;
    throw new UsageError(
      `${flag} is not the ARN of a secret. Specify one like arn:aws:secretsmanager:REGION:ACCOUNT:secret:NAME.`,
    );
  });
  return secret ?? '';
}

/** Reads the value of both parts, or of each. Throws `UsageError` if only one part has a value. */
function byPart<T extends string | AssumedRole>(
  options: AccessOptions,
  [both, relay, evict]: readonly [both: Name, relay: Name, evict: Name],
  read: (arn: string, flag: string) => T,
): ByPart<T> | undefined {
  const [one, ofRelay, ofEvict] = [options[both], options[relay], options[evict]];
  const [flag, relayFlag, evictFlag] = [flagOf(both), flagOf(relay), flagOf(evict)];
  if (ofRelay === undefined && ofEvict === undefined) return one === undefined ? one : read(one, flag);
  if (one !== undefined) {
    throw new UsageError(`${flag} is mutually exclusive with ${relayFlag} and ${evictFlag}. Specify either.`);
  }
  if (ofRelay !== undefined && ofEvict !== undefined)
    return { relay: read(ofRelay, relayFlag), evict: read(ofEvict, evictFlag) };
  const [given, missing] = ofRelay === undefined ? [evictFlag, relayFlag] : [relayFlag, evictFlag];
  throw new UsageError(`${given} requires ${missing}. To use the same for relay and evict, specify ${flag}.`);
}

const flagOf = (name: Name): string =>
  `--${name.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
