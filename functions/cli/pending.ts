import { type Command, Option } from 'commander';
import { clusterOrAll, rulingsNow } from '#functions/operator/fleet.ts';
import type { FleetChoice } from '#functions/operator/fleet-choice.ts';
import { type Pending, pendingOf } from '#functions/operator/pending.ts';
import { targetText } from '#shared/clusters/operator.ts';
import type { Rulings } from '#shared/clusters/rulebook.ts';
import type { EpochMs } from '#shared/eviction/identity.ts';
import type { EvictionRecord } from '#shared/eviction/records.ts';
import { taintText } from '#shared/taints/taint.ts';
import type { CliDeps } from './command.ts';
import { jsonText, type OutputFormat, outputOption, tableText, timeText } from './output.ts';
import { stuckOf } from './stuck.ts';

/** `taintward pending`: what is to be evicted, when, and what holds it. */
export function addPendingCommand(program: Command, deps: CliDeps): void {
  const command = program
    .command('pending')
    .description('shows which pods are to be evicted, when, and what holds them')
    .argument('[cluster]', 'its name (default: all clusters)')
    .option('--held', 'only those that are due and held', false)
    .addOption(
      new Option('--stuck', 'in place of them: those that were evicted and do not leave, and what helps')
        .conflicts('held')
        .default(false),
    )
    .addOption(outputOption());
  command.action(async (name: string | undefined) => {
    const options = command.optsWithGlobals<
      FleetChoice & { held: boolean; stuck: boolean; output: OutputFormat }
    >();
    const fleet = deps.fleet(options);
    const clusters = await clusterOrAll(name, fleet);
    if (options.stuck) return deps.print(await stuckOf(fleet.leases, clusters, options.output));
    const rulings = await rulingsNow(clusters, fleet);
    const found: Pending[] = [];
    for (const cluster of clusters) found.push(...(await pendingOf(fleet.store, cluster, deps.clock.now())));
    const shown = options.held ? found.filter(({ record }) => record.held) : found;
    if (options.output === 'json') deps.print(jsonText(shown.map(pendingJson)));
    else if (shown.length === 0) deps.print(`No pod is ${options.held ? 'held' : 'to be evicted'}.\n`);
    else
      deps.print(
        tableText([
          ['CLUSTER', 'NODE', 'POD', 'DUE', 'TAINT', 'HELD BY'],
          ...shown.map((each) => [
            each.cluster,
            each.node,
            `${each.record.namespace}/${each.record.name}`,
            timeText(each.record.fireAt),
            each.record.reasons.map(({ taint }) => taintText(taint)).join(', '),
            standingText(each.record, rulings.get(each.cluster)),
          ]),
        ]),
      );
  });
}

/** What keeps a record from being done, for people; nothing, as a rule. */
function standingText(record: EvictionRecord, rulings: Rulings | undefined): string {
  const { held, gaveUpAt, failure, blocked, turnAt } = record;
  if (gaveUpAt !== undefined)
    return `given up ${timeText(gaveUpAt)}: ${failure?.error ?? 'it failed for too long'}`;
  if (!held) {
    if (failure) return `tried again: ${failure.error}`;
    if (blocked) return `disruption budget since ${timeText(blocked.since)}: ${blocked.reason}`;
    return turnAt === undefined ? '' : `rate: its turn is at ${timeText(turnAt)}`;
  }
  const { by } = held;
  switch (by.kind) {
    case 'observe':
      return 'observe';
    case 'paused':
      return `paused${untilText(by.until)}`;
    case 'stopped': {
      const stop = by.scope === 'fleet' ? rulings?.fleetStop : rulings?.orders.stop;
      return `stop of ${by.scope === 'fleet' ? 'all clusters' : 'the cluster'}${untilText(by.until)}${whyText(stop)}`;
    }
    case 'hold': {
      const hold = rulings?.orders.holds.find(({ id }) => id === by.id);
      return `hold ${by.id}${hold ? ` of ${targetText(hold.target)}` : ''}${untilText(by.until)}${whyText(hold)}`;
    }
    case 'excluded':
      return `policy${untilText(by.until)}`;
    case 'guard':
      return `guard (${by.scope})`;
    default:
      return by satisfies never;
  }
}

const untilText = (until: EpochMs | undefined): string =>
  until === undefined ? '' : ` until ${timeText(until)}`;

const whyText = (act: { readonly why: string } | undefined): string => (act ? `: ${act.why}` : '');

/** A pod for programs. */
function pendingJson({ cluster, node, record }: Pending): object {
  const { uid, namespace, name, fireAt, reasons, held, gaveUpAt, failure, blocked, turnAt } = record;
  return {
    ...{ cluster, node, namespace, pod: name, uid, dueAt: timeText(fireAt) },
    taints: reasons.map(({ taint }) => taintText(taint)),
    ...(held ? { held: { ...held, since: timeText(held.since) } } : {}),
    ...(blocked ? { blocked: { since: timeText(blocked.since), reason: blocked.reason } } : {}),
    ...(turnAt === undefined ? {} : { turnAt: timeText(turnAt) }),
    ...(gaveUpAt === undefined ? {} : { gaveUpAt: timeText(gaveUpAt) }),
    ...(failure ? { error: failure.error } : {}),
  };
}
