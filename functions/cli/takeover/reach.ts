import { Argument, type Command } from 'commander';
import { type CliDeps, kubeconfigOption, noSuchCluster } from '#functions/cli/command.ts';
import { changesEvictions, printFleet, withFleet } from '#functions/cli/with-fleet.ts';
import { type ClusterName, clusterName } from '#shared/eviction/identity.ts';
import { noteAct } from '#shared/operations/acts/note-act.ts';
import { ClusterObjects } from '#shared/operations/fleet/cluster-objects.ts';
import { type ContextFleet, clusterNamed, type Fleet, UsageError } from '#shared/operations/fleet/fleet.ts';
import type { LiveChoice } from '#shared/operations/fleet/fleet-choice.ts';
import { contextAccess } from '#shared/operations/fleet/open-fleet.ts';
import type { ClusterAct } from '#shared/state/rules-store.ts';

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
  const choice = command.optsWithGlobals<LiveChoice>();
  const access = contextAccess(choice);
  if ((name === undefined) === (access === undefined)) {
    throw new UsageError('Specify either a registered cluster or --context NAME.');
  }
  if (access === undefined) {
    await withFleet(command, deps, async (fleet) => {
      const { objects, managedAs } = await named(name ?? '', fleet, deps);
      const note: NoteAct = (kind, what) => noteAct(fleet, managedAs, kind, what, deps);
      await act(objects, note).finally(() => objects.close());
    });
    return;
  }
  const { context } = access;
  if (changesEvictions(command)) await printFleet({ where: `context ${context}` }, deps);
  const registered = { name: clusterName(context), access, addedAt: deps.clock.now() };
  const objects = new ClusterObjects(deps.connect(registered, 'relay'));
  const note: NoteAct = async (kind, what) => {
    const fleet = await deps.live(choice);
    try {
      const managedAs = await managed(fleet, registered.name);
      if (managedAs !== undefined && fleet.kind !== 'context')
        await noteAct(fleet, managedAs, kind, what, deps);
    } finally {
      fleet.close();
    }
  };
  await act(objects, note).finally(() => objects.close());
}

async function named(name: string, fleet: Fleet, deps: CliDeps) {
  if (!fleet.registry) {
    const managedAs = await clusterNamed(name, fleet);
    return { objects: (await fleet.cluster(managedAs)).objects, managedAs };
  }
  const cluster = await fleet.registry.get(clusterName(name));
  if (!cluster) throw noSuchCluster(name);
  // Neither part of the service has the permissions for a takeover. If the parts have their own roles, the
  // operator needs a separate role, too.
  return { objects: new ClusterObjects(deps.connect(cluster, 'relay')), managedAs: cluster.name };
}

/** The cluster's name in its fleet. A fleet in a cluster manages only that. */
async function managed(fleet: Fleet | ContextFleet, name: ClusterName): Promise<ClusterName | undefined> {
  if (fleet.kind === 'in-cluster') return (await fleet.clusters())[0];
  return (await fleet.manages(name)) ? name : undefined;
}
