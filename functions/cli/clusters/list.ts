import type { Command } from 'commander';
import type { CliDeps } from '../deps.ts';
import { jsonText, type OutputFormat, outputOption, tableText } from '../output.ts';
import { accessText, addedText, registrationJson } from './registration-text.ts';

export function addListCommand(clusters: Command, deps: CliDeps): void {
  const command = clusters
    .command('list')
    .description('shows all clusters that are managed')
    .addOption(outputOption());
  command.action(async () => {
    const { table, output } = command.optsWithGlobals<{ table: string; output: OutputFormat }>();
    const found = await deps.registry(table).list();
    if (output === 'json') deps.print(jsonText(found.map(registrationJson)));
    else if (found.length === 0)
      deps.print('No cluster is registered: taintward clusters add registers one.\n');
    else
      deps.print(
        tableText([
          ['NAME', 'ADDED', 'REACHED BY'],
          ...found.map((c) => [c.name, addedText(c), accessText(c)]),
        ]),
      );
  });
}
