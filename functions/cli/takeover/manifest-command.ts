import type { Command } from 'commander';
import { type CliDeps, CliError } from '#functions/cli/command.ts';
import { withExamples } from '#functions/cli/output.ts';
import { NODE_TAKEOVER_COMMENT, nodeTakeover } from '#shared/operations/takeover/at-nodes.ts';
import {
  kyvernoPodTakeover,
  POD_TAKEOVER_COMMENT,
  podTakeover,
} from '#shared/operations/takeover/at-pods.ts';
import { type Manifest, manifestText } from '#shared/operations/takeover/manifest.ts';
import { addTakeoverOptions, parseTakeover, type Takeover, type TakeoverOptions } from './options.ts';

/** `taintward takeover manifest`: prints the objects of a takeover. */
export function addManifestCommand(takeover: Command, deps: Pick<CliDeps, 'print'>): void {
  const command = takeover
    .command('manifest')
    .summary('Print the manifests of a takeover')
    .description('Print the manifests that apply installs, for example for a Git repository.');
  addTakeoverOptions(command).option(
    '--kyverno',
    'Kyverno policy for a pod-level takeover, for Kubernetes before 1.36',
  );
  withExamples(
    command,
    'taintward takeover manifest --level node > takeover.yaml',
    'taintward takeover manifest --level pod --kyverno | kubectl apply -f -',
  ).action(() => {
    const { kyverno, ...options } = command.opts<TakeoverOptions & { readonly kyverno?: true }>();
    const wanted = parseTakeover(options);
    if (kyverno && wanted.at === 'node') {
      throw new CliError(
        '--kyverno belongs to --level pod: at nodes a taint is refused by its age, which Kyverno has no parameter for.',
      );
    }
    deps.print(manifestText(commentOf(wanted), objectsOf(wanted, kyverno)));
  });
}

/** Returns the objects of a takeover, in the order in which they are applied. */
export function objectsOf(wanted: Takeover, kyverno = false): readonly Manifest[] {
  if (wanted.at === 'node') return nodeTakeover(wanted.spec);
  return kyverno ? kyvernoPodTakeover(wanted.spec) : podTakeover(wanted.spec);
}

const commentOf = ({ at }: Takeover): string =>
  at === 'node' ? NODE_TAKEOVER_COMMENT : POD_TAKEOVER_COMMENT;
