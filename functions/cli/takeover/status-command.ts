import type { Command } from 'commander';
import type { CliDeps } from '#functions/cli/command.ts';
import {
  type OutputFormat,
  outputOption,
  printShown,
  roomIn,
  type TableLayout,
  tableText,
  withExamples,
} from '#functions/cli/output.ts';
import type { BuiltIn } from '#shared/explain/built-in.ts';
import type { Takeover } from '#shared/kubernetes/api.ts';
import { isAlive, isInForce } from '#shared/kubernetes/takeover.ts';
import { builtInOf } from '#shared/operations/look/built-in.ts';
import { ago, type TakeoverState, takeoverState } from '#shared/operations/takeover/state.ts';
import { durationText } from '#shared/time/duration.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import { timeText } from '#shared/time/time-text.ts';
import { addReachOptions, withCluster } from './reach.ts';

/** `taintward takeover status`: the installed takeover, its heartbeat, and the built-in controller. */
export function addStatusCommand(takeover: Command, deps: CliDeps): void {
  const command = takeover
    .command('status')
    .summary('Show the takeover of a cluster')
    .description('Show the installed takeover, its heartbeat, and the built-in controller.')
    .addOption(outputOption());
  withExamples(
    addReachOptions(command),
    'taintward takeover status prod',
    'taintward takeover status --context kind-kind -o json',
  ).action((name: string | undefined) =>
    withCluster(name, command, deps, async (objects) => {
      const { output } = command.opts<{ readonly output: OutputFormat }>();
      const builtIn = await builtInOf(objects);
      const state = await takeoverState(objects, deps.clock);
      const text = (layout: TableLayout) => stateText(state, builtIn, roomIn(layout));
      printShown({ data: () => takeoverOutput(state, builtIn), text }, output, deps);
    }),
  );
}

function stateText({ now, nodes, alarms }: TakeoverState, builtIn: BuiltIn, room: number): string {
  const rows = [
    ['PART', 'STATE'],
    ['takeover', nodes ? nodesText(nodes.live, now) : 'not installed'],
    ['built-in controller', `${builtIn.state}: ${builtIn.evidence}`],
    ...alarms.map((alarm) => ['ALARM', alarm]),
  ];
  return tableText(rows, room);
}

function nodesText(takeover: Takeover | undefined, now: EpochMs): string {
  if (!takeover) return 'partly installed';
  const { heartbeat, aliveSince, lapseMs, keys, withheld } = takeover;
  const lapse = `heartbeat timeout ${durationText(lapseMs)}; ${keys.join(', ')}`;
  if (heartbeat === undefined) return `installed, never renewed; ${lapse}`;
  const alive = withheld === undefined ? `active since ${timeText(aliveSince ?? heartbeat)}` : 'suspended';
  const state = isAlive(takeover, now) ? alive : 'expired';
  return `${state}, renewed ${ago(heartbeat, now)}; ${lapse}`;
}

function takeoverOutput({ now, nodes, alarms }: TakeoverState, builtIn: BuiltIn) {
  const moment = (at: EpochMs | undefined) => (at === undefined ? null : new Date(at).toISOString());
  const live = nodes?.live;
  return {
    nodes: live
      ? {
          keys: live.keys,
          heartbeatTimeoutSeconds: live.lapseMs / 1000,
          heartbeat: moment(live.heartbeat),
          activeSince: moment(live.aliveSince),
          active: isInForce(live, now),
          suspended: live.withheld ?? null,
        }
      : null,
    builtIn,
    alarms,
  };
}
export type TakeoverOutput = ReturnType<typeof takeoverOutput>;
