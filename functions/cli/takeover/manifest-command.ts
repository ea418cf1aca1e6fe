import type { Command } from 'commander';
import type { CliDeps } from '#functions/cli/command.ts';
import { withExamples } from '#functions/cli/output.ts';
import { NODE_TAKEOVER_COMMENT, nodeTakeover } from '#shared/operations/takeover/at-nodes.ts';
import { manifestText } from '#shared/operations/takeover/manifest.ts';
import { addTakeoverOptions, parseTakeover, type TakeoverOptions } from './options.ts';

/** `taintward takeover manifest`: prints the objects of a takeover. */
export function addManifestCommand(takeover: Command, deps: Pick<CliDeps, 'print'>): void {
  const command = takeover
    .command('manifest')
    .summary('Print the manifests of a takeover')
    .description('Print the manifests that apply installs, for example for a Git repository.');
  withExamples(addTakeoverOptions(command), 'taintward takeover manifest > takeover.yaml').action(() => {
    const objects = nodeTakeover(parseTakeover(command.opts<TakeoverOptions>()));
    deps.print(manifestText(NODE_TAKEOVER_COMMENT, objects));
  });
}
