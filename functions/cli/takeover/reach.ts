import { Argument, type Command } from 'commander';
import { type CliDeps, CliError } from '#functions/cli/command.ts';
import { clusterName } from '#shared/eviction/identity.ts';
import { ClusterObjects } from './cluster-objects.ts';

/** Which cluster a command is about, as its arguments say. */
interface ReachOptions {
  readonly table: string;
  readonly context?: string;
  readonly kubeconfig?: string;
}

/** A command about one cluster, registered or of a kubeconfig. */
export const addReachOptions = (command: Command): Command =>
  command
    .addArgument(new Argument('[cluster]', "a registered cluster's name"))
    .option('--context <name>', 'instead: a context of a kubeconfig file')
    .option('--kubeconfig <file>', 'with --context: the file (default: $KUBECONFIG, then ~/.kube/config)');

/** Lets `act` work on the cluster that is meant. Rejects with `CliError` when none is, or one that nobody knows. */
export async function withCluster(
  name: string | undefined,
  command: Command,
  deps: CliDeps,
  act: (objects: ClusterObjects) => Promise<void>,
): Promise<void> {
  const options = command.optsWithGlobals<ReachOptions>();
  const objects = new ClusterObjects(deps.connect(await reached(name, options, deps)));
  try {
    await act(objects);
  } finally {
    objects.close();
  }
}

async function reached(
  name: string | undefined,
  { table, context, kubeconfig }: ReachOptions,
  { registry, clock }: CliDeps,
): Promise<Parameters<CliDeps['connect']>[0]> {
  if ((name === undefined) === (context === undefined)) {
    throw new CliError(
      'Say which cluster is meant: the name of a registered one, or --context NAME, not both.',
    );
  }
  if (context !== undefined) {
    const access = { kind: 'local-context', context, ...(kubeconfig ? { kubeconfig } : {}) } as const;
    return { name: clusterName(context), access, addedAt: clock.now() };
  }
  if (kubeconfig !== undefined)
    throw new CliError('--kubeconfig needs --context: say which of its clusters is meant.');
  const cluster = await registry(table).get(clusterName(name ?? ''));
  if (cluster) return cluster;
  throw new CliError(`There is no cluster ${name}: taintward clusters list shows those there are.`);
}
