import type { Command } from 'commander';
import type { CliDeps } from '#functions/cli/command.ts';
import { addDryRun, type DryRunOptions, printPreviews } from '#functions/cli/dry-run.ts';
import { withExamples } from '#functions/cli/output.ts';
import {
  NODE_BINDING,
  NODE_TAKEOVER,
  NODE_TAKEOVER_COMMENT,
  nodeTakeover,
} from '#shared/operations/takeover/at-nodes.ts';
import { manifestText, pathOf } from '#shared/operations/takeover/manifest.ts';
import { addApplyCommand } from './apply-command.ts';
import { changedObjects } from './changed-objects.ts';
import { addTakeoverOptions, parseTakeover, type TakeoverOptions } from './options.ts';
import { addReachOptions, withCluster } from './reach.ts';
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

function addManifestCommand(takeover: Command, deps: Pick<CliDeps, 'print'>): void {
  const command = takeover
    .command('manifest')
    .summary('Print the manifests of a takeover')
    .description('Print the manifests that apply installs, for example for a Git repository.');
  withExamples(addTakeoverOptions(command), 'taintward takeover manifest > takeover.yaml').action(() => {
    const objects = nodeTakeover(parseTakeover(command.opts<TakeoverOptions>()));
    deps.print(manifestText(NODE_TAKEOVER_COMMENT, objects));
  });
}

function addReleaseCommand(takeover: Command, deps: CliDeps): void {
  const command = takeover
    .command('release')
    .summary('Return eviction to the built-in controller')
    .description(
      'Remove a takeover completely, so that the built-in controller evicts again. It can be repeated.',
    );
  withExamples(
    addDryRun(addReachOptions(command)),
    'taintward takeover release prod',
    'taintward takeover release prod --dry-run',
  ).action((name: string | undefined) =>
    withCluster(name, command, deps, async (objects, note) => {
      const options = command.opts<DryRunOptions>();
      if (options.dryRun) {
        const changes = await changedObjects(objects, OBJECTS, 'delete');
        const change = 'The takeover is released.';
        const effects = ['The built-in controller evicts again.'];
        printPreviews(changes.length === 0 ? [] : [{ change, effects, objects: changes }], options, deps);
        return;
      }
      let removed = 0;
      for (const manifest of OBJECTS) if (await objects.remove(pathOf(manifest))) removed += 1;
      if (removed > 0) await note('takeover-released', 'released the takeover');
      deps.print(
        removed === 0
          ? 'No takeover is installed.\n'
          : 'Released. Within seconds, taints of the node controller are admitted again, and the built-in controller evicts for them. Remove treatAsNoExecute from the policy.\n',
      );
    }),
  );
}

/** The binding is removed first, because it puts the policy in force. The kind of the heartbeat is removed last. */
const OBJECTS = [NODE_BINDING, ...nodeTakeover(NODE_TAKEOVER).toReversed()];
