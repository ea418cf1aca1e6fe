import type { Command } from 'commander';
import type { CliDeps } from '#functions/cli/command.ts';
import { addApplyCommand } from './apply-command.ts';
import { addManifestCommand } from './manifest-command.ts';
import { addReleaseCommand } from './release-command.ts';
import { addStatusCommand } from './status-command.ts';

/** `taintward takeover`: takeovers from a built-in controller that cannot be disabled. */
export function addTakeoverCommand(program: Command, deps: CliDeps): void {
  const takeover = program
    .command('takeover')
    .summary('Manage built-in controller takeovers')
    .description('Manage takeovers from a built-in taint-eviction controller that cannot be disabled.');
  for (const addCommand of [addManifestCommand, addApplyCommand, addStatusCommand, addReleaseCommand])
    addCommand(takeover, deps);
}
