import { writeFileSync } from 'node:fs';
import { cpus, loadavg } from 'node:os';
import { inspect } from 'node:util';
import { Command, InvalidArgumentError } from 'commander';
import { onStopSignal } from '#shared/time/stopping.ts';
import { ownApiServer } from './api-server.ts';
import { chaos } from './chaos.ts';
import { deployed } from './deployed.ts';
import { oneProcess } from './one-process.ts';
import { table } from './table.ts';

const number = (text: string): number => {
  const value = Number(text);
  if (!(value > 0)) throw new InvalidArgumentError('It has to be a number above 0.');
  return value;
};

interface Options {
  readonly seed: number;
  readonly nodes: number;
  readonly pods: number;
  readonly minutes: number;
  readonly deployed?: true;
  readonly testbed?: string;
  readonly json?: string;
}

async function main(options: Options): Promise<void> {
  const { seed, nodes, pods: podsPerNode, minutes, testbed, json } = options;
  const print = (line: string) => process.stdout.write(`${line}\n`);
  const loadBefore = loadavg();
  const startedAt = new Date().toISOString();
  print(`seed ${seed}`);
  await using opened = new AsyncDisposableStack();
  const own =
    testbed === undefined ? undefined : opened.adopt(await ownApiServer(testbed), (each) => each.close());
  if (own) process.env['KUBECONFIG'] = own.kubeconfig;
  const report = await chaos({
    scale: { seed, nodes, podsPerNode, minutes },
    start: options.deployed ? deployed : oneProcess,
    ...(own ? { apiServer: own.victim } : {}),
    print,
  });
  const machine = {
    node: process.version,
    cpus: cpus().map(({ model }) => model),
    loadBefore,
    load: loadavg(),
  };
  const form = options.deployed ? 'deployed' : 'one process';
  print(table({ form, ...report }));
  for (const crash of report.crashes) print(`ended by itself: ${crash}`);
  for (const { kind, pod, node, why } of report.violations) print(`${kind}: ${pod} on ${node}: ${why}`);
  if (json) writeFileSync(json, JSON.stringify({ form, startedAt, machine, ...report }, null, 2));
  if (report.violations.length + report.crashes.length > 0) process.exitCode = 1;
}

// All processes that were started for this run end with it.
onStopSignal(() => process.exit(1));

try {
  await new Command('npm run chaos --')
    .description(
      'Has processes, connections and the API server fail under steady work, and compares what was evicted with a naive rule.',
    )
    .option('--seed <number>', 'plays the plan of a seed again', number, Math.ceil(Math.random() * 1_000_000))
    .option('--nodes <number>', '', number, 200)
    .option('--pods <number>', 'of each node', number, 30)
    .option('--minutes <number>', 'for so long; then all has to come to rest', number, 10)
    .option('--deployed', 'the deployed stack, on AWS_ENDPOINT_URL or a MiniStack')
    .option(
      '--testbed <program>',
      'starts an API server by `program up --dir DIR`, and stops and continues that; else KUBECONFIG is used, and stopped at the proxy',
    )
    .option('--json <file>', 'writes what is told, and all violations')
    .action(main)
    .parseAsync();
} catch (error) {
  // A failure of the cleanup suppresses the original failure, which is the one to show.
  const first = error instanceof SuppressedError ? error.suppressed : error;
  process.stderr.write(`${inspect(first)}\n`);
  process.exitCode = 2;
}
