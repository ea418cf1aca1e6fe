import type { Command } from 'commander';
import { type CliDeps, CliError, confirmed } from './command.ts';
import { addDryRun, type DryRunOptions, printPreviews } from './dry-run.ts';
import { linesText, withExamples } from './output.ts';
import { withFleet } from './with-fleet.ts';

interface RestoreOptions extends DryRunOptions {
  readonly from: string;
  readonly yes: boolean;
}

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
  withExamples(
    addDryRun(command),
    'taintward restore --from taintward-restored',
    'taintward restore --from taintward-restored --dry-run',
  ).action(() =>
    withFleet<RestoreOptions>(command, deps, async (fleet, { from, yes, ...options }) => {
      if (!fleet.restoreFrom) {
        throw new CliError(
          `No table to restore into (${fleet.where}). Copy the directory back, or specify --table NAME for a deployment.`,
        );
      }
      if (options.dryRun) {
        deps.progress(`Reading ${from}`);
        const count = await fleet.restoreFrom(from, { dryRun: true });
        const change = `${count} items are copied from ${from} into ${fleet.where}. Items with the same key are overwritten.`;
        printPreviews([{ change, effects: [] }], options, deps);
        return;
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
