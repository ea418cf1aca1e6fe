import { Argument, type Command } from 'commander';
import { type CliDeps, CliError, kubeconfigOption } from '#functions/cli/command.ts';
import { noteAct } from '#functions/cli/note-act.ts';
import { changesEvictions, printFleet } from '#functions/cli/with-fleet.ts';
import { type ClusterName, clusterName } from '#shared/eviction/identity.ts';
import { ClusterObjects } from '#shared/operations/fleet/cluster-objects.ts';
import { type ContextFleet, clusterNamed, type Fleet, UsageError } from '#shared/operations/fleet/fleet.ts';
import type { FleetChoice } from '#shared/operations/fleet/fleet-choice.ts';
import type { ClusterAct } from '#shared/state/rules-store.ts';

interface ReachOptions extends FleetChoice {
  readonly context?: string;
  readonly kubeconfig?: string;
}

/** Adds the argument and options of a command for one cluster, registered or of a kubeconfig. */
export const addReachOptions = (command: Command): Command =>
  command
    .addArgument(new Argument('[cluster]', 'cluster name'))
    .option('--context <name>', 'kubeconfig context, instead of a registered cluster')
    .addOption(kubeconfigOption());

/** Records an act in the audit log of the fleet that manages the cluster, if any. */
export type NoteAct = (kind: ClusterAct, what: string) => Promise<void>;

/** Rejects with `CliError` if no cluster is selected, or if it is unknown. */
export async function withCluster(
  name: string | undefined,
  command: Command,
  deps: CliDeps,
  act: (objects: ClusterObjects, note: NoteAct) => Promise<void>,
): Promise<void> {
  const { objects, managing } = await reached(name, command, deps);
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
  /** Returns the fleet that manages the cluster. The caller closes it. */
  managing(): Promise<Managing>;
}

interface Managing {
  readonly fleet: Fleet | ContextFleet;
  /** Absent: the fleet does not manage the cluster. */
  readonly managedAs?: ClusterName | undefined;
}

async function reached(name: string | undefined, command: Command, deps: CliDeps): Promise<Reached> {
  const { context, kubeconfig, ...choice } = command.optsWithGlobals<ReachOptions>();
  if ((name === undefined) === (context === undefined)) {
    throw new UsageError('Specify either a registered cluster or --context NAME.');
  }
  if (context !== undefined) {
    const file = kubeconfig ? { kubeconfig } : {};
    const access = { kind: 'local-context', context, ...file } as const;
    if (changesEvictions(command)) await printFleet({ where: `context ${context}` }, deps);
    const registered = { name: clusterName(context), access, addedAt: deps.clock.now() };
    return {
      objects: new ClusterObjects(deps.connect(registered, 'relay')),
      async managing() {
        const fleet = await deps.live({ ...choice, context, ...file });
        const managedAs = await managed(fleet, registered.name).catch((error: unknown) => {
          fleet.close();
          throw error;
        });
        return { fleet, managedAs };
      },
    };
  }
  if (kubeconfig !== undefined)
    throw new UsageError('--kubeconfig requires --context NAME, which selects the cluster.');
  const fleet = await deps.fleet(choice);
  try {
    if (changesEvictions(command)) await printFleet(fleet, deps);
    const { objects, managedAs } = await named(name ?? '', fleet, deps);
    return { objects, managing: async () => ({ fleet: await deps.fleet(choice), managedAs }) };
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
  // Neither part of the service has the permissions for a takeover. If the parts have their own roles, the
  // operator needs a separate role, too.
  return { objects: new ClusterObjects(deps.connect(cluster, 'relay')), managedAs: cluster.name };
}

/** The cluster's name in its fleet. A fleet in a cluster manages only that. */
async function managed(fleet: Fleet | ContextFleet, name: ClusterName): Promise<ClusterName | undefined> {
  if (fleet.kind === 'in-cluster') return (await fleet.clusters())[0];
  return (await fleet.manages(name)) ? name : undefined;
}
