import type { Command } from 'commander';
import { type CliDeps, CliError, confirmed } from './command.ts';
import { linesText, withExamples } from './output.ts';
import { withFleet } from './with-fleet.ts';

/** `taintward restore`: copies the items of a restored backup table into the table in use. */
export function addRestoreCommand(program: Command, deps: CliDeps): void {
  const command = program
    .command('restore')
    .summary('Restore state from a backup table')
    .description(
      'Copy all items but leases from a restored backup table into the table in use. Stop the relays first.',
    )
    .requiredOption('--from <table>', 'table that was restored from a backup')
    .option('--yes', 'skip the confirmation', false);
  withExamples(command, 'taintward restore --from taintward-restored').action(() =>
    withFleet<{ from: string; yes: boolean }>(command, deps, async (fleet, { from, yes }) => {
      if (!fleet.restoreFrom) {
        throw new CliError(
          `No table to restore into (${fleet.where}). Copy the directory back, or specify --table NAME for a deployment.`,
        );
      }
      if (
        !yes &&
        !(await confirmed(`Overwrite items in ${fleet.where} with items from ${from}?`, deps.confirm))
      )
        throw new CliError('Canceled. Nothing was changed.');
      deps.progress(`Copying ${from}`);
      const count = await fleet.restoreFrom(from);
      deps.print(linesText([`Copied ${count} items from ${from} into ${fleet.where}.`]));
    }),
  );
}
