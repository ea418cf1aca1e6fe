import { Command, InvalidArgumentError, Option } from 'commander';
import { ceilingOf } from './ceiling.ts';
import { readConstants } from './constants.ts';
import type { ModelInput } from './model.ts';
import { besides, costRows, deployed, HEAD, resourceRows, verdict } from './report.ts';
import { SCENARIOS, type ScenarioName } from './scenarios.ts';
import { settingsFor } from './settings.ts';

const count = (text: string): number => {
  const value = Number(text);
  if (!(Number.isInteger(value) && value > 0))
    throw new InvalidArgumentError('It has to be a whole number above 0.');
  return value;
};

/** As a terminal shows it: links and emphasis are Markdown's. */
const plain = (text: string): string =>
  text
    .replace(/\[([^\]]+)\]\([^)]+\)/g, '$1')
    .replaceAll('**', '')
    .replaceAll('`', '');

/** Columns as wide as their widest cell. */
function columns(rows: readonly (readonly string[])[]): string {
  const cells = rows.map((row) => row.map(plain));
  const widths = (cells[0] ?? []).map((_, at) => Math.max(...cells.map((row) => (row[at] ?? '').length)));
  return cells
    .map((row) =>
      row
        .map((cell, at) => cell.padEnd(widths[at] ?? 0))
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
}

interface Options {
  readonly clusters: number;
  readonly nodes: number;
  readonly pods: number;
  readonly scenario: ScenarioName;
  readonly relays?: number;
  readonly relayCpu?: number;
  readonly relayMemory?: number;
  readonly deltaConcurrency?: number;
  readonly evictConcurrency?: number;
  readonly warmWrites?: number;
}

new Command('scale')
  .description('Says what a fleet uses of each resource, what breaks first, and what it costs.')
  .option('--clusters <count>', 'clusters of the fleet', count, 1_000)
  .option('--nodes <count>', 'nodes of each cluster', count, 5_000)
  .option('--pods <count>', 'pods of each node', count, 30)
  .addOption(
    new Option('--scenario <name>', 'what happens')
      .choices(Object.keys(SCENARIOS))
      .default('zone' satisfies ScenarioName),
  )
  .option('--relays <count>', 'in place of what the guide says for a fleet of that size', count)
  .option('--relay-cpu <units>', 'likewise, in 1/1024 vCPU', count)
  .option('--relay-memory <MiB>', 'likewise', count)
  .option('--delta-concurrency <count>', 'likewise', count)
  .option('--evict-concurrency <count>', 'likewise', count)
  .option('--warm-writes <units>', 'likewise', count)
  .action((options: Options) => {
    const { clusters, nodes, pods } = options;
    const fleet = { clusters, nodes, pods };
    const constants = readConstants();
    const guide = settingsFor(fleet, constants);
    const input: ModelInput = {
      ...{ fleet, constants, scenario: SCENARIOS[options.scenario] },
      settings: {
        ...guide,
        relayCount: options.relays ?? guide.relayCount,
        relayCpu: options.relayCpu ?? guide.relayCpu,
        relayMemoryMiB: options.relayMemory ?? guide.relayMemoryMiB,
        deltaConcurrency: options.deltaConcurrency ?? guide.deltaConcurrency,
        evictConcurrency: options.evictConcurrency ?? guide.evictConcurrency,
        warmWrites: options.warmWrites ?? guide.warmWrites,
      },
    };
    const { clusters: most, beyond } = ceilingOf(fleet, input.scenario, constants);
    const text = [
      `${options.scenario}: ${input.scenario.about}`,
      `With ${plain(deployed(input))}:`,
      '',
      columns([HEAD, ...resourceRows(input, true)]),
      '',
      verdict(input),
      `As the guide deploys them, ${most.toLocaleString('en-US')} such clusters hold; beyond, ${beyond.what} does not.`,
      plain(besides(input)),
      '',
      columns([['cost', 'us-east-1'], ...costRows(input)]),
    ];
    process.stdout.write(`${text.join('\n')}\n`);
  })
  .parse();
