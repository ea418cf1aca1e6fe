import type { Command } from 'commander';
import type { CliDeps } from '#functions/cli/command.ts';
import { addDryRun, type DryRunOptions, printPreviews } from '#functions/cli/dry-run.ts';
import { withExamples } from '#functions/cli/output.ts';
import { NODE_BINDING, NODE_TAKEOVER, nodeTakeover } from '#shared/operations/takeover/at-nodes.ts';
import { pathOf } from '#shared/operations/takeover/manifest.ts';
import { changedObjects } from './changed-objects.ts';
import { addReachOptions, withCluster } from './reach.ts';

/**
 * `taintward takeover release`: returns eviction to the built-in controller, and removes all objects of the
 * takeover.
 */
export function addReleaseCommand(takeover: Command, deps: CliDeps): void {
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
