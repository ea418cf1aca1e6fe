import { Argument, type Command } from 'commander';
import { type CliDeps, CliError } from '#functions/cli/command.ts';
import { noteAct } from '#functions/cli/note-act.ts';
import { type ClusterName, clusterName } from '#shared/eviction/identity.ts';
import { ClusterObjects } from '#shared/operations/fleet/cluster-objects.ts';
import { type ContextFleet, clusterNamed, type Fleet, UsageError } from '#shared/operations/fleet/fleet.ts';
import type { FleetChoice } from '#shared/operations/fleet/fleet-choice.ts';
import type { ClusterAct } from '#shared/state/rules-store.ts';

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

/** Notes in the audit of the fleet that manages the cluster what was done to it; where none does, nothing. */
export type NoteAct = (kind: ClusterAct, what: string) => Promise<void>;

/** Lets `act` work on the cluster that is meant. Rejects with `CliError` when none is, or one that nobody knows. */
export async function withCluster(
  name: string | undefined,
  command: Command,
  deps: CliDeps,
  act: (objects: ClusterObjects, note: NoteAct) => Promise<void>,
): Promise<void> {
  const options = command.optsWithGlobals<ReachOptions>();
  const { objects, managing } = await reached(name, options, deps);
  try {
    await act(objects, async (kind, what) => {
      const { fleet, managedAs } = await managing();
      try {
        if (managedAs !== undefined && fleet.kind !== 'context')
          await noteAct(fleet, managedAs, kind, what, deps);
      } finally {
        fleet.close();
      }
    });
  } finally {
    objects.close();
  }
}

interface Reached {
  readonly objects: ClusterObjects;
  /** The fleet that manages it, which the caller closes. */
  managing(): Promise<Managing>;
}

interface Managing {
  readonly fleet: Fleet | ContextFleet;
  /** Absent: the fleet does not manage it. */
  readonly managedAs?: ClusterName | undefined;
}

async function reached(
  name: string | undefined,
  { context, kubeconfig, ...choice }: ReachOptions,
  deps: CliDeps,
): Promise<Reached> {
  if ((name === undefined) === (context === undefined)) {
    throw new UsageError('Specify either a registered cluster or --context NAME.');
  }
  if (context !== undefined) {
    const file = kubeconfig ? { kubeconfig } : {};
    const access = { kind: 'local-context', context, ...file } as const;
    const registered = { name: clusterName(context), access, addedAt: deps.clock.now() };
    return {
      objects: new ClusterObjects(deps.connect(registered, 'relay')),
      async managing() {
        const fleet = await deps.live({ ...choice, context, ...file });
        return { fleet, managedAs: await managed(fleet, registered.name) };
      },
    };
  }
  if (kubeconfig !== undefined)
    throw new UsageError('--kubeconfig requires --context NAME, which selects the cluster.');
  const fleet = deps.fleet(choice);
  try {
    const { objects, managedAs } = await named(name ?? '', fleet, deps);
    return { objects, managing: async () => ({ fleet: deps.fleet(choice), managedAs }) };
  } finally {
    fleet.close();
  }
}

async function named(
  name: string,
  fleet: Fleet,
  deps: CliDeps,
): Promise<{ readonly objects: ClusterObjects; readonly managedAs: ClusterName }> {
  if (!fleet.registry) {
    const managedAs = await clusterNamed(name, fleet);
    return { objects: (await fleet.cluster(managedAs)).objects, managedAs };
  }
  const cluster = await fleet.registry.get(clusterName(name));
  if (!cluster) throw new CliError(`Cluster "${name}" not found. Run "taintward clusters list".`);
  // Neither part of the service may do what is done here: where they have roles of their own, so needs whoever does it.
  return { objects: new ClusterObjects(deps.connect(cluster, 'relay')), managedAs: cluster.name };
}

/** The name under which a fleet manages the cluster of that context: a fleet in a cluster manages that one alone. */
async function managed(fleet: Fleet | ContextFleet, name: ClusterName): Promise<ClusterName | undefined> {
  if (fleet.kind === 'in-cluster') return (await fleet.clusters())[0];
  return (await fleet.manages(name)) ? name : undefined;
}
