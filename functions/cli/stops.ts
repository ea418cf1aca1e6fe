import { type Command, Option } from 'commander';
import { isOn } from '#shared/eviction/gate.ts';
import { NO_REASON } from '#shared/operations/acts/act.ts';
import type { Performed } from '#shared/operations/acts/perform.ts';
import { clusterNamed, clustersNamed, UsageError } from '#shared/operations/fleet/fleet.ts';
import { OperatorError } from '#shared/state/operator.ts';
import { type CliDeps, forOption, whyOption } from './command.ts';
import { type CliAct, doActs } from './do-acts.ts';
import { addDryRun, type DryRunOptions } from './dry-run.ts';
import { withExamples } from './output.ts';
import { withFleet } from './with-fleet.ts';

interface StopOptions extends DryRunOptions {
  readonly all: boolean;
  readonly reason: string;
  readonly for?: number;
  readonly id?: string;
}

const allOption = (): Option =>
  new Option('--all', 'all clusters, including clusters registered later').default(false);

/** The reason is optional, so that nobody has to write one in an emergency. */
const stopReasonOption = (): Option =>
  new Option('--reason <text>', 'reason, recorded in the audit log').default(NO_REASON);

/** `taintward stop`, `pause`, `resume`: stop and resume the evictions of one or all clusters. */
export function addStopCommands(program: Command, deps: CliDeps): void {
  addStopCommand(program, deps);
  addPauseCommand(program, deps);
  addResumeCommand(program, deps);
}

function addStopCommand(program: Command, deps: CliDeps): void {
  const command = program
    .command('stop')
    .summary('Stop evictions')
    .description('Stop all evictions in clusters, within a second.')
    .argument('[clusters...]', 'cluster names')
    .addOption(allOption())
    .addOption(stopReasonOption())
    .addOption(forOption());
  withExamples(
    addDryRun(command),
    'taintward stop --all',
    'taintward stop prod --reason "network maintenance" --for 2h',
    'taintward stop prod --dry-run',
  ).action((names: readonly string[]) =>
    withFleet<StopOptions>(command, deps, async (fleet, { all, reason, for: durationMs, ...options }) => {
      const isUrgent = true;
      if (all && names.length === 0) {
        const hint = () => "To resume, run taintward resume --all --reason 'REASON'.";
        await doActs([{ act: { kind: 'stop', reason, durationMs }, isUrgent, hint }], fleet, options, deps);
        return;
      }
      const clusters = await clustersNamed(names, all, fleet);
      const acts = clusters.map((cluster): CliAct => {
        return { act: { kind: 'stop', cluster, reason, durationMs }, isUrgent };
      });
      await doActs(acts, fleet, options, deps);
    }),
  );
}

function addPauseCommand(program: Command, deps: CliDeps): void {
  const command = program
    .command('pause')
    .summary('Pause evictions in a cluster')
    .description(
      'Stop all evictions in a cluster for planned work, like stop. Other stops and the policy stay as they are.',
    )
    .argument('<cluster>', 'cluster name')
    .addOption(whyOption())
    .addOption(forOption());
  withExamples(addDryRun(command), 'taintward pause prod --reason "node upgrade" --for 4h').action(
    (name: string) =>
      withFleet<StopOptions>(command, deps, async (fleet, { reason, for: durationMs, ...options }) => {
        const cluster = await clusterNamed(name, fleet);
        const { policy } = (await fleet.rulesStore.read(cluster)).orders;
        if (policy?.read.mode !== 'enforce')
          throw new OperatorError(`Cluster ${cluster} is in observe mode. Nothing to pause.`);
        const act = { kind: 'stop', cluster, reason, durationMs } as const;
        const hint = ({ stop }: Performed) =>
          `To resume, run taintward resume ${cluster} --id ${stop} --reason 'REASON'.`;
        await doActs([{ act, isUrgent: true, hint }], fleet, options, deps);
      }),
  );
}

function addResumeCommand(program: Command, deps: CliDeps): void {
  const command = program
    .command('resume')
    .summary('Resume evictions')
    .description(
      'End the stop of clusters, or with --all the stop of all clusters. Other stops stay in force. A cluster can be resumed alone while all are stopped.',
    )
    .argument('[clusters...]', 'cluster names')
    .addOption(allOption())
    .option('--id <id>', 'ID of the stop, with several stops of a cluster')
    .addOption(whyOption());
  withExamples(
    addDryRun(command),
    'taintward resume prod --reason "fixed"',
    'taintward resume --all --reason "the incident is over"',
    'taintward resume prod --reason "fixed" --dry-run',
  ).action((names: readonly string[]) =>
    withFleet<StopOptions>(command, deps, async (fleet, { all, reason, id, ...options }) => {
      if (id !== undefined && (all || names.length > 1))
        throw new UsageError('--id names a stop of one cluster. Specify that cluster alone.');
      if (all && names.length === 0) {
        const hint = () => 'Clusters that were stopped by name stay stopped.';
        await doActs([{ act: { kind: 'resume', reason }, isUrgent: true, hint }], fleet, options, deps);
        return;
      }
      const clusters = await clustersNamed(names, all, fleet);
      const acts = clusters.map((cluster) => ({ act: { kind: 'resume', cluster, reason, id } as const }));
      await doActs(acts, fleet, options, deps);
      const fleetStop = await fleet.rulesStore.fleetStop();
      if (fleetStop && isOn(fleetStop.until, deps.clock.now()) && !options.dryRun) {
        deps.print(
          "The stop of all clusters stays in force. To end it, run taintward resume --all --reason 'REASON'.\n",
        );
      }
    }),
  );
}
