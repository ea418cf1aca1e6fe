import { resolve } from 'node:path';
import type { Command } from 'commander';
import type { Access, EksAccess } from '#shared/clusters/registry.ts';
import { CliError } from './command.ts';

const FLAGS = [
  { name: 'eks', flag: '--eks' },
  { name: 'region', flag: '--region' },
  { name: 'roleArn', flag: '--role-arn' },
  { name: 'externalId', flag: '--external-id' },
  { name: 'kubeconfigSecret', flag: '--kubeconfig-secret' },
  { name: 'context', flag: '--context' },
  { name: 'kubeconfig', flag: '--kubeconfig' },
] as const;
type Name = (typeof FLAGS)[number]['name'];

/** How a cluster is to be reached, as flags say it. */
export type AccessOptions = { readonly [N in Name]?: string };

interface Way {
  readonly kind: Access['kind'];
  readonly flag: string;
  readonly names: readonly Name[];
}

/** Each way with what belongs to it, first what chooses it. */
const WAYS: readonly Way[] = [
  { kind: 'eks', flag: '--eks', names: ['eks', 'region', 'roleArn', 'externalId'] },
  { kind: 'kubeconfig-secret', flag: '--kubeconfig-secret', names: ['kubeconfigSecret', 'context'] },
  { kind: 'local-context', flag: '--context', names: ['context', 'kubeconfig'] },
];

const ROLE_ARN = /^arn:[^:]+:iam::\d{12}:role\/.+$/;
const SECRET_ARN = /^arn:[^:]+:secretsmanager:[^:]+:\d{12}:secret:.+$/;

export function addAccessOptions(command: Command): Command {
  return command
    .option('--eks <cluster>', 'reach it by IAM: its name in EKS')
    .option('--region <region>', 'with --eks: where it is')
    .option('--role-arn <arn>', "with --eks: the role to assume, for another account's clusters")
    .option('--external-id <id>', 'with --role-arn: what the role wants to hear')
    .option('--kubeconfig-secret <arn>', 'reach it by a kubeconfig in AWS Secrets Manager')
    .option(
      '--context <name>',
      'of that kubeconfig (default: its current one); by itself: of a kubeconfig file',
    )
    .option('--kubeconfig <file>', 'with --context: the file (default: $KUBECONFIG, then ~/.kube/config)');
}

/** Throws `CliError` when the flags do not make one way. */
export function parseAccess(options: AccessOptions): Access {
  const { kind } = wayOf(options);
  const { eks = '', kubeconfigSecret = '', context = '', kubeconfig } = options;
  switch (kind) {
    case 'eks':
      return { kind, clusterName: eks, region: regionOf(options), ...roleOf(options) };
    case 'kubeconfig-secret':
      if (!SECRET_ARN.test(kubeconfigSecret)) {
        throw new CliError(
          '--kubeconfig-secret is not the ARN of a secret: it is like arn:aws:secretsmanager:REGION:ACCOUNT:secret:NAME.',
        );
      }
      return { kind, secretArn: kubeconfigSecret, ...(context && { context }) };
    case 'local-context':
      return { kind, context, ...(kubeconfig && { kubeconfig: resolve(kubeconfig) }) };
    default:
      return kind satisfies never;
  }
}

function wayOf(options: AccessOptions): Way {
  const way = WAYS.find(({ names: [first] }) => first !== undefined && options[first] !== undefined);
  if (way === undefined) {
    throw new CliError(
      'Say how the cluster is reached: --eks NAME --region REGION, --kubeconfig-secret ARN, or --context NAME.',
    );
  }
  for (const { name, flag } of FLAGS) {
    if (options[name] === '') throw new CliError(`${flag} is empty: fill it, or leave it out.`);
    if (options[name] !== undefined && !way.names.includes(name)) {
      throw new CliError(`${flag} cannot stand beside ${way.flag}: leave one of them out.`);
    }
  }
  return way;
}

function regionOf({ region }: AccessOptions): string {
  if (region) return region;
  throw new CliError('--eks needs --region: say where the cluster is.');
}

function roleOf({ roleArn, externalId }: AccessOptions): Pick<EksAccess, 'role'> {
  if (roleArn === undefined) {
    if (externalId === undefined) return {};
    throw new CliError('--external-id needs --role-arn: it is told to the account whose role is assumed.');
  }
  if (!ROLE_ARN.test(roleArn)) {
    throw new CliError('--role-arn is not the ARN of a role: it is like arn:aws:iam::ACCOUNT:role/NAME.');
  }
  return { role: { arn: roleArn, ...(externalId && { externalId }) } };
}
