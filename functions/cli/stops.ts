import { type Command, Option } from 'commander';
import { isOn, modeOf } from '#shared/eviction/gate.ts';
import type { ClusterName } from '#shared/eviction/identity.ts';
import { released } from '#shared/operations/acts/effect.ts';
import { clusterNamed, clustersNamed, type Fleet } from '#shared/operations/fleet/fleet.ts';
import { pendingLook } from '#shared/operations/look/pending.ts';
import { NO_REASON, type Operator } from '#shared/state/operator.ts';
import type { Clock } from '#shared/time/clock.ts';
import { timeText } from '#shared/time/time-text.ts';
import { type CliDeps, CliError, forOption, whyOption } from './command.ts';
import { linesText, withExamples } from './output.ts';
import { withFleet } from './with-fleet.ts';

interface StopOptions {
  readonly all: boolean;
  readonly reason: string;
  readonly for?: number;
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
    command,
    'taintward stop --all',
    'taintward stop prod --reason "network maintenance" --for 2h',
  ).action((names: readonly string[]) =>
    withFleet<StopOptions>(command, deps, async (fleet, { all, reason: why, for: durationMs }) => {
      if (all && names.length === 0) {
        const { until } = await (await fleet.operator()).stopAll({ why, durationMs });
        deps.print(
          `Evictions are stopped in all clusters${untilText(until)}. To resume, run taintward resume --all --reason 'REASON'.\n`,
        );
        return;
      }
      const clusters = await clustersNamed(names, all, fleet);
      const operator = await fleet.operator();
      for (const cluster of clusters) {
        const { until } = await operator.stop(cluster, { why, durationMs });
        deps.print(`Evictions are stopped in cluster ${cluster}${untilText(until)}.\n`);
      }
    }),
  );
}

function addPauseCommand(program: Command, deps: CliDeps): void {
  const command = program
    .command('pause')
    .summary('Pause enforcement in a cluster')
    .description(
      'Pause enforcement in a cluster, within a second. Resume restores its policy. In an emergency, use stop instead.',
    )
    .argument('<cluster>', 'cluster name')
    .addOption(whyOption())
    .addOption(forOption());
  withExamples(command, 'taintward pause prod --reason "node upgrade" --for 4h').action((name: string) =>
    withFleet<StopOptions>(command, deps, async (fleet, { reason: why, for: durationMs }) => {
      const cluster = await clusterNamed(name, fleet);
      const { until } = await (await fleet.operator()).pause(cluster, { why, durationMs });
      deps.print(
        `Cluster ${cluster} is paused${untilText(until)}: due evictions are held. To resume, run taintward resume ${cluster} --reason 'REASON'.\n`,
      );
    }),
  );
}

function addResumeCommand(program: Command, deps: CliDeps): void {
  const command = program
    .command('resume')
    .summary('Resume evictions')
    .description('End a stop or a pause of clusters, or with --all the stop of all clusters.')
    .argument('[clusters...]', 'cluster names')
    .addOption(allOption())
    .addOption(whyOption());
  withExamples(
    command,
    'taintward resume prod --reason "fixed"',
    'taintward resume --all --reason "the incident is over"',
  ).action((names: readonly string[]) =>
    withFleet<StopOptions>(command, deps, async (fleet, { all, reason: why }) => {
      if (all && names.length === 0) {
        await (await fleet.operator()).resumeAll(why);
        deps.print(
          'Evictions are resumed in all clusters. Clusters that were stopped by name stay stopped.\n',
        );
        return;
      }
      const clusters = await clustersNamed(names, all, fleet);
      const operator = await fleet.operator();
      for (const cluster of clusters) deps.print(await resumed(cluster, why, fleet, operator, deps.clock));
      const fleetStop = await fleet.rulesStore.fleetStop();
      if (fleetStop && isOn(fleetStop.until, deps.clock.now())) {
        throw new CliError(
          `All clusters are stopped together (${fleetStop.who}: ${fleetStop.why}). To resume, run taintward resume --all --reason 'REASON'.`,
        );
      }
    }),
  );
}

/** Ends the stop of a cluster. If the cluster is only paused, ends the pause. Returns the effect as text. */
async function resumed(
  cluster: ClusterName,
  why: string,
  fleet: Fleet,
  operator: Operator,
  clock: Clock,
): Promise<string> {
  const { policy, stop } = (await fleet.rulesStore.read(cluster)).orders;
  const now = clock.now();
  const pending = await pendingLook(fleet, cluster, now);
  const isPaused = policy !== undefined && modeOf(policy.read, now) === 'paused';
  if (isPaused && !(stop && isOn(stop.until, now))) {
    await operator.unpause(cluster, why);
    const { says } = released(pending, ({ kind }) => kind === 'paused', { now });
    return linesText([`Cluster ${cluster} is no longer paused.`, ...says]);
  }
  await operator.resume(cluster, why);
  const { says } = released(pending, (by) => by.kind === 'stopped' && by.scope === 'cluster', { now });
  const paused = `The cluster is still paused. To end the pause, run taintward resume ${cluster} --reason 'REASON' again.`;
  return linesText([`Evictions are resumed in cluster ${cluster}.`, ...says, ...(isPaused ? [paused] : [])]);
}

const untilText = (until: number | undefined): string =>
  until === undefined ? '' : ` until ${timeText(until)}`;
