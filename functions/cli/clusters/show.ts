import type { Command } from 'commander';
import type { ClusterName } from '#shared/eviction/identity.ts';
import type { CliDeps } from '../deps.ts';
import { jsonText, type OutputFormat, outputOption, tableText } from '../output.ts';
import { nameArgument, noSuchCluster } from './name-argument.ts';
import { accessText, addedText, registrationJson } from './registration-text.ts';

export function addShowCommand(clusters: Command, deps: CliDeps): void {
  const command = clusters
    .command('show')
    .description('shows one cluster')
    .addArgument(nameArgument())
    .addOption(outputOption());
  command.action(async (name: ClusterName) => {
    const { table, output } = command.optsWithGlobals<{ table: string; output: OutputFormat }>();
    const cluster = await deps.registry(table).get(name);
    if (!cluster) throw noSuchCluster(name);
    if (output === 'json') deps.print(jsonText(registrationJson(cluster)));
    else
      deps.print(
        tableText([
          ['NAME', name],
          ['ADDED', addedText(cluster)],
          ['REACHED BY', accessText(cluster)],
        ]),
      );
  });
}
