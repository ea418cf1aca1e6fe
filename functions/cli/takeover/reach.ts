import { Argument, type Command } from 'commander';
import { type CliDeps, CliError } from '#functions/cli/command.ts';
import { ClusterObjects } from '#functions/operator/cluster-objects.ts';
import type { FleetChoice } from '#functions/operator/fleet-choice.ts';
import { clusterName } from '#shared/eviction/identity.ts';

/** Which cluster a command is about, as its arguments say. */
interface ReachOptions extends FleetChoice {
  readonly context?: string;
  readonly kubeconfig?: string;
}

/** A command about one cluster, registered or of a kubeconfig. */
export const addReachOptions = (command: Command): Command =>
  command
    .addArgument(new Argument('[cluster]', 'cluster name'))
    .option('--context <name>', 'kubeconfig context, instead of a registered cluster')
    .option(
      '--kubeconfig <file>',
      'kubeconfig file, with --context (default: $KUBECONFIG, then ~/.kube/config)',
    );

/** Lets `act` work on the cluster that is meant. Rejects with `CliError` when none is, or one that nobody knows. */
export async function withCluster(
  name: string | undefined,
  command: Command,
  deps: CliDeps,
  act: (objects: ClusterObjects) => Promise<void>,
): Promise<void> {
  const options = command.optsWithGlobals<ReachOptions>();
  // Neither part of the service may do what is done here: where they have roles of their own, so needs whoever does it.
  const objects = new ClusterObjects(deps.connect(await reached(name, options, deps), 'relay'));
  try {
    await act(objects);
  } finally {
    objects.close();
  }
}

async function reached(
  name: string | undefined,
  { context, kubeconfig, ...choice }: ReachOptions,
  deps: CliDeps,
): Promise<Parameters<CliDeps['connect']>[0]> {
  if ((name === undefined) === (context === undefined)) {
    throw new CliError('Specify either a registered cluster or --context NAME.');
  }
  if (context !== undefined) {
    const access = { kind: 'local-context', context, ...(kubeconfig ? { kubeconfig } : {}) } as const;
    return { name: clusterName(context), access, addedAt: deps.clock.now() };
  }
  if (kubeconfig !== undefined)
    throw new CliError('--kubeconfig requires --context NAME, which selects the cluster.');
  const fleet = deps.fleet(choice);
  try {
    const { registry, where } = fleet;
    if (!registry) throw new CliError(`No clusters are registered in ${where}. Specify --context NAME.`);
    const cluster = await registry.get(clusterName(name ?? ''));
    if (cluster) return cluster;
    throw new CliError(`Cluster "${name}" not found. Run "taintward clusters list".`);
  } finally {
    fleet.close();
  }
}
