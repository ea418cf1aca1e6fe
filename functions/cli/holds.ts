import { Argument, type Command, InvalidArgumentError } from 'commander';
import { clusterNamed, clusterOrAll, rulingsNow } from '#functions/operator/fleet.ts';
import type { FleetChoice } from '#functions/operator/fleet-choice.ts';
import { targetText } from '#shared/clusters/operator.ts';
import type { Rulings } from '#shared/clusters/rulebook.ts';
import { type ClusterName, type EpochMs, nodeName } from '#shared/eviction/identity.ts';
import type { HoldTarget } from '#shared/eviction/policy.ts';
import { type CliDeps, CliError, forOption, whyOption } from './command.ts';
import { jsonText, type OutputFormat, outputOption, tableText, timeText } from './output.ts';

/** `taintward hold`, `release`, `holds`: what is kept from being evicted, by people and by the guard. */
export function addHoldCommands(program: Command, deps: CliDeps): void {
  const hold = program.command('hold').description('keeps something from being evicted');
  addTarget(hold, deps, 'pod', 'a pod', new Argument('<pod>', 'NAMESPACE/NAME').argParser(podTarget));
  addTarget(
    hold,
    deps,
    'workload',
    'the pods of a workload',
    new Argument('<workload>', 'NAMESPACE/KIND/NAME, as default/Deployment/web').argParser(workloadTarget),
  );
  addTarget(
    hold,
    deps,
    'node',
    'the pods of a node',
    new Argument('<node>', 'its name').argParser(nodeTarget),
  );
  addReleaseCommand(program, deps);
  addHoldsCommand(program, deps);
}

function addTarget(hold: Command, deps: CliDeps, name: string, what: string, argument: Argument): void {
  const command = hold
    .command(name)
    .description(`keeps ${what} from being evicted`)
    .addArgument(argument)
    .requiredOption('--cluster <name>', 'where it is')
    .addOption(whyOption())
    .addOption(forOption());
  command.action(async (target: HoldTarget) => {
    const options = command.optsWithGlobals<FleetChoice & { cluster: string; why: string; for?: number }>();
    const fleet = deps.fleet(options);
    const cluster = await clusterNamed(options.cluster, fleet);
    const { why, for: forMs } = options;
    const { id, until } = await (await fleet.operator()).hold(cluster, target, { why, forMs });
    const how = until === undefined ? `until taintward release ${id}` : `until ${timeText(until)}`;
    deps.print(`Hold ${id}: ${targetText(target)} of cluster ${cluster} stays, ${how}.\n`);
  });
}

function podTarget(text: string): HoldTarget {
  const [namespace, name, ...more] = text.split('/');
  if (namespace && name && more.length === 0) return { kind: 'pod', namespace, name };
  throw new InvalidArgumentError('A pod is named NAMESPACE/NAME.');
}

function workloadTarget(text: string): HoldTarget {
  const [namespace, kind, name, ...more] = text.split('/');
  if (namespace && kind && name && more.length === 0) {
    return { kind: 'workload', namespace, owner: { kind, name } };
  }
  throw new InvalidArgumentError('A workload is named NAMESPACE/KIND/NAME, as default/Deployment/web.');
}

const nodeTarget = (text: string): HoldTarget => ({ kind: 'node', node: nodeName(text) });

function addReleaseCommand(program: Command, deps: CliDeps): void {
  const command = program
    .command('release')
    .description('lets go what is held: by a hold, or by the guard of a cluster')
    .argument('<hold>', 'its ID, or "guard"')
    .argument('[cluster]', 'with guard: the name of its cluster')
    .addOption(whyOption());
  command.action(async (id: string, name: string | undefined) => {
    const options = command.optsWithGlobals<FleetChoice & { why: string }>();
    const fleet = deps.fleet(options);
    if (id === 'guard') {
      if (name === undefined) throw new CliError('Say whose guard: taintward release guard CLUSTER.');
      const cluster = await clusterNamed(name, fleet);
      await (await fleet.operator()).releaseGuard(cluster, options.why);
      deps.print(`What the guard of cluster ${cluster} held is let go, at the rate of drain.\n`);
      return;
    }
    const clusters = await fleet.clusters();
    const rulings = await rulingsNow(clusters, fleet);
    const found = clusters.filter((cluster) =>
      rulings.get(cluster)?.orders.holds.some((hold) => hold.id === id),
    );
    const [cluster] = found;
    if (cluster === undefined) {
      throw new CliError(`There is no hold ${id}: taintward holds shows those there are.`);
    }
    const { target } = await (await fleet.operator()).release(cluster, id, options.why);
    deps.print(`${targetText(target)} of cluster ${cluster} is held by ${id} no longer.\n`);
  });
}

function addHoldsCommand(program: Command, deps: CliDeps): void {
  const command = program
    .command('holds')
    .description('shows what is stopped and held, by whom and why')
    .argument('[cluster]', 'its name (default: all clusters)')
    .addOption(outputOption());
  command.action(async (name: string | undefined) => {
    const options = command.optsWithGlobals<FleetChoice & { output: OutputFormat }>();
    const fleet = deps.fleet(options);
    const clusters = await clusterOrAll(name, fleet);
    const rulings = await rulingsNow(clusters, fleet);
    const fleetStop = await fleet.rulebook.fleetStop();
    const now = deps.clock.now();
    const rows = [
      ...(fleetStop ? [{ cluster: '(all)', id: 'stop', what: 'all evictions', ...fleetStop }] : []),
      ...[...rulings].flatMap(([cluster, found]) => heldBy(cluster, found)),
    ].filter(({ until }) => until === undefined || now < until);
    if (options.output === 'json') deps.print(jsonText(rows.map(rowJson)));
    else if (rows.length === 0) deps.print('Nothing is stopped or held.\n');
    else
      deps.print(
        tableText([
          ['CLUSTER', 'ID', 'WHAT', 'SINCE', 'UNTIL', 'WHO', 'WHY'],
          ...rows.map(({ cluster, id, what, at, until, who, why }) => [
            cluster,
            id,
            what,
            timeText(at),
            until === undefined ? '' : timeText(until),
            who,
            why,
          ]),
        ]),
      );
  });
}

/** Something that keeps evictions from happening. */
interface Row {
  readonly cluster: string;
  readonly id: string;
  readonly what: string;
  readonly at: EpochMs;
  readonly until?: EpochMs;
  readonly who: string;
  readonly why: string;
}

function heldBy(cluster: ClusterName, { orders: { stop, holds }, guard }: Rulings): readonly Row[] {
  return [
    ...(stop ? [{ cluster, id: 'stop', what: 'all evictions', ...stop }] : []),
    ...guard.trips.map(({ scope, zone, trippedAt, nodes, outOf }) => ({
      ...{ cluster, id: 'guard', who: 'guard', at: trippedAt },
      what: zone === undefined ? scope : `${scope} ${zone}`,
      why: `${nodes} of ${outOf} nodes were affected`,
    })),
    ...holds.map((hold) => ({ cluster, ...hold, what: targetText(hold.target) })),
  ];
}

const rowJson = ({ cluster, id, what, at, until, who, why }: Row): object => ({
  ...{ cluster, id, what, who, why, since: timeText(at) },
  ...(until === undefined ? {} : { until: timeText(until) }),
});
