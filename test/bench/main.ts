import { inspect } from 'node:util';
import { Argument, Command, InvalidArgumentError } from 'commander';
import { onStopSignal } from '#shared/time/stopping.ts';
import { traced } from './eviction/trace.ts';
import { figureRow, HEAD } from './figure-text.ts';
import { type Figure, loadNow, stolenSince, thisMachine, timesNow } from './result.ts';
import { type BenchOptions, NotHereError } from './scenario.ts';
import { PARTS, SCENARIOS } from './scenarios.ts';

/** Pods on the node of each trace. */
const TRACED = [1, 30];

/** Above this load by other processes, in cores, or above this share of stolen time, a measurement is marked. */
const QUIET = { load: 0.5, stolen: 0.02 };

const whole = (text: string): number => {
  const value = Number(text);
  if (!Number.isInteger(value) || value < 1) throw new InvalidArgumentError('It has to be 1 or more.');
  return value;
};

/** Returns the text of an error, and of the earlier error if the cleanup after it failed, too. */
const errorText = (error: unknown): string =>
  error instanceof SuppressedError
    ? `${errorText(error.suppressed)}\n  and then ${errorText(error.error)}`
    : inspect(error);

/**
 * Measures one scenario, prints its figures as rows of the table, and returns the time and conditions of the
 * measurement.
 */
async function measure(name: string, options: BenchOptions): Promise<string | undefined> {
  const scenario = SCENARIOS[name] ?? PARTS[name];
  if (scenario === undefined) return undefined;
  const { err, out } = { err: process.stderr, out: process.stdout };
  err.write(`${name}: ${scenario.about}\n`);
  const load = loadNow();
  if (load > QUIET.load) {
    err.write(
      `  The machine is busy (load ${load}): times are too long, and ratios hold better than they.\n`,
    );
  }
  const [beganAt, times] = [new Date(), timesNow()];
  const figures: Figure[] = [];
  try {
    await scenario.run((figure) => figures.push(figure), options);
  } catch (error) {
    if (!(error instanceof NotHereError)) process.exitCode = 1;
    const how = error instanceof NotHereError ? 'LEFT OUT' : 'BROKE OFF';
    err.write(`  ${how}: ${error instanceof NotHereError ? error.message : errorText(error)}\n`);
  }
  // A value alone, without a peer and an aim, says nothing on another machine.
  for (const figure of figures.filter(({ aim, peer }) => aim ?? peer))
    out.write(`${figureRow(name, figure)}\n`);
  const runs = Math.max(0, ...figures.map(({ ours }) => ours.length));
  const seconds = Math.round((Date.now() - beganAt.getTime()) / 1000);
  const stolen = stolenSince(times);
  const conditions = `load ${load} before, ${(stolen * 100).toFixed(1)} % stolen`;
  const mark = load > QUIET.load || stolen > QUIET.stolen ? ' BUSY' : '';
  return `${name} ${beganAt.toISOString().slice(0, 10)}, ${runs} run${runs === 1 ? '' : 's'} in ${seconds} s, ${conditions}${mark}`;
}

// Exit handlers end the processes that were started.
onStopSignal(() => process.exit(1));

await new Command('bench')
  .description('Measures the service beside its peers, turn by turn.')
  .addArgument(
    new Argument('[scenarios...]', 'what to measure; without any: all').choices(
      Object.keys({ ...SCENARIOS, ...PARTS }),
    ),
  )
  .option(
    '--runs <count>',
    'how often ours and its peer take turns, in place of what each scenario thinks right',
    whole,
  )
  .option('--short', 'within seconds: shows that it works, and measures nothing', false)
  .option('--minutes <minutes>', 'how long the soak takes', whole, 120)
  .option('--trace', 'prints each request and wait of an eviction, for one pod and for a node of 30', false)
  .action(async (names: readonly string[], { runs, short, minutes, trace }) => {
    for (const podsPerNode of trace ? TRACED : []) {
      const text = await traced({ nodes: 1, podsPerNode });
      process.stdout.write(
        `pods: ${podsPerNode}, milliseconds from the first request after the taint\n${text}\n`,
      );
    }
    if (trace) return;
    const all = Object.keys(SCENARIOS);
    process.stdout.write(`${HEAD}\n`);
    const measured: string[] = [];
    for (const name of names.length > 0 ? names : all) {
      measured.push((await measure(name, { runs, short, soakMinutes: minutes })) ?? '');
    }
    process.stdout.write(`\n${thisMachine()}\n${measured.join('\n')}\n`);
  })
  .parseAsync();
process.exit();
