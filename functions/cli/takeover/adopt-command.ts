import type { Command } from 'commander';
import { type CliDeps, CliError } from '#functions/cli/command.ts';
import { addDryRun, type DryRunOptions, printPreviews } from '#functions/cli/dry-run.ts';
import { withExamples } from '#functions/cli/output.ts';
import { installedAtPods } from '#shared/operations/takeover/installed.ts';
import { namespacesOf, podsOf, taintedNodes } from '#shared/operations/takeover/namespaces.ts';
import type { PodJson } from '#shared/operations/takeover/taken-pod.ts';
import { takenOver } from '#shared/operations/takeover/taken-tolerations.ts';
import { countMoves, type Moves, movePods } from './move-pods.ts';
import { addReachOptions, withCluster } from './reach.ts';

/** `taintward takeover adopt`: takes over pods that existed before the takeover. */
export function addAdoptCommand(takeover: Command, deps: CliDeps): void {
  const command = takeover
    .command('adopt')
    .summary('Take over existing pods')
    .description('Take over the pods that existed before a pod-level takeover. It can be repeated.');
  withExamples(
    addDryRun(addReachOptions(command)),
    'taintward takeover adopt prod',
    'taintward takeover adopt prod --dry-run',
  ).action((name: string | undefined) =>
    withCluster(name, command, deps, async (objects) => {
      const installed = await installedAtPods(objects);
      // A takeover without its binding takes over no pods, and may be in the process of its release.
      if (!installed || installed.faults.missing.length > 0) {
        throw new CliError(
          'No pod-level takeover is installed. Run "taintward takeover apply --level pod" first. A node-level takeover has no pods to adopt.',
        );
      }
      const { spec } = installed;
      const pods = podsOf(objects, await namespacesOf(objects, spec));
      const wanted = (pod: PodJson) => (pod.untouchable ? undefined : takenOver(pod.state, spec));
      const options = command.opts<DryRunOptions>();
      if (options.dryRun) {
        const change = `Pods taken over: ${await countMoves(pods, wanted)}.`;
        printPreviews([{ change, effects: [] }], options, deps);
        return;
      }
      const moves = await movePods(objects, pods, await taintedNodes(objects), deps.progress, wanted);
      report(deps, moves, 'taken over');
    }),
  );
}

/** Prints how many pods were changed. Throws `CliError` if some could not be changed. */
export function report(deps: Pick<CliDeps, 'print'>, { moved, failed }: Moves, done: string): void {
  deps.print(`Pods ${done}: ${moved}.\n`);
  if (failed.size === 0) return;
  const [first] = failed;
  throw new CliError(
    `${failed.size} pods could not be changed, including ${first?.[0]}. Fix the cause and run the command again. ${first?.[1]}`,
  );
}
