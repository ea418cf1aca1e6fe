import { type Command, Option } from 'commander';
import { clustersNamed } from '#functions/operator/fleet.ts';
import type { FleetChoice } from '#functions/operator/fleet-choice.ts';
import { type CliDeps, CliError, forOption, whyOption } from './command.ts';
import { timeText } from './output.ts';

interface StopOptions extends FleetChoice {
  readonly all: boolean;
  readonly why: string;
  readonly for?: number;
}

const allOption = (): Option =>
  new Option('--all', 'all of them, also those that are added later').default(false);

/** `taintward stop`, `taintward resume`: nothing is evicted in a cluster, or in any, until it is resumed. */
export function addStopCommands(program: Command, deps: CliDeps): void {
  const stop = program
    .command('stop')
    .description('stops all evictions in clusters, within 5 s')
    .argument('[clusters...]', 'their names')
    .addOption(allOption())
    .addOption(whyOption())
    .addOption(forOption());
  stop.action(async (names: readonly string[]) => {
    const { why, for: forMs, ...options } = stop.optsWithGlobals<StopOptions>();
    const fleet = deps.fleet(options);
    if (options.all && names.length === 0) {
      const { until } = await (await fleet.operator()).stopAll({ why, forMs });
      deps.print(
        `Nothing is evicted in any cluster from now on${untilText(until)}; taintward resume --all goes on.\n`,
      );
      return;
    }
    const clusters = await clustersNamed(names, options.all, fleet);
    const operator = await fleet.operator();
    for (const cluster of clusters) {
      const { until } = await operator.stop(cluster, { why, forMs });
      deps.print(`Nothing is evicted in cluster ${cluster} from now on${untilText(until)}.\n`);
    }
  });

  const resume = program
    .command('resume')
    .description('takes a stop back: of clusters by name, or with --all that of all together')
    .argument('[clusters...]', 'their names')
    .addOption(allOption())
    .addOption(whyOption());
  resume.action(async (names: readonly string[]) => {
    const { why, ...options } = resume.optsWithGlobals<StopOptions>();
    const fleet = deps.fleet(options);
    if (options.all && names.length === 0) {
      await (await fleet.operator()).resumeAll(why);
      deps.print('The stop of all clusters is taken back; those that were stopped by name stay so.\n');
      return;
    }
    const clusters = await clustersNamed(names, options.all, fleet);
    const operator = await fleet.operator();
    for (const cluster of clusters) {
      await operator.resume(cluster, why);
      deps.print(`Cluster ${cluster} is not stopped any more.\n`);
    }
    const fleetStop = await fleet.rulebook.fleetStop();
    if (fleetStop) {
      throw new CliError(
        `All clusters are stopped together (${fleetStop.who}: ${fleetStop.why}): taintward resume --all takes that back.`,
      );
    }
  });
}

const untilText = (until: number | undefined): string =>
  until === undefined ? '' : `, until ${timeText(until)}`;
