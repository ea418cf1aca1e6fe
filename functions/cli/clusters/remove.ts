import type { Command } from 'commander';
import type { ClusterName } from '#shared/eviction/identity.ts';
import type { CliDeps } from '../deps.ts';
import { nameArgument, noSuchCluster } from './name-argument.ts';

export function addRemoveCommand(clusters: Command, deps: CliDeps): void {
  const command = clusters
    .command('remove')
    .description('has a cluster no longer managed; nothing is changed in it')
    .addArgument(nameArgument());
  command.action(async (name: ClusterName) => {
    const { table } = command.optsWithGlobals<{ table: string }>();
    if ((await deps.registry(table).remove(name)) === 'unknown') throw noSuchCluster(name);
    deps.print(
      `Cluster ${name} is no longer managed, within 30 s; its nodes and pods are left as they are.\n`,
    );
  });
}
