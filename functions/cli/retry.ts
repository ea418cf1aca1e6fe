import type { Command } from 'commander';
import { clusterOrAll } from '#shared/operations/fleet/fleet.ts';
import { type CliDeps, whyOption } from './command.ts';
import { doActs } from './do-acts.ts';
import { addDryRun, type DryRunOptions } from './dry-run.ts';
import { withExamples } from './output.ts';
import { withFleet } from './with-fleet.ts';

/** `taintward retry`: retries failed evictions. */
export function addRetryCommand(program: Command, deps: CliDeps): void {
  const command = program
    .command('retry')
    .summary('Retry failed evictions')
    .description(
      'Retry failed evictions, and now those that wait for their next try because of failures. Evictions that a disruption budget blocks are not hurried.',
    )
    .argument('[cluster]', 'cluster name (default: all clusters)')
    .addOption(whyOption().makeOptionMandatory(false));
  withExamples(
    addDryRun(command),
    'taintward retry prod',
    "taintward retry prod --reason 'the webhook is fixed'",
  ).action((name: string | undefined) =>
    withFleet<DryRunOptions & { reason?: string }>(command, deps, async (fleet, { reason, ...options }) => {
      const clusters = await clusterOrAll(name, fleet);
      const why = reason === undefined ? {} : { reason };
      const acts = clusters.map((cluster) => ({ act: { kind: 'retry', cluster, ...why } }) as const);
      await doActs(acts, fleet, options, deps);
    }),
  );
}
