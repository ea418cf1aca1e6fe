import { Console } from 'node:console';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { inspect } from 'node:util';
import { Argument, Command, InvalidArgumentError } from 'commander';
import { aimText, amount, ratioText } from './figure-text.ts';
import { type Figure, loadNow, median, type Result, ratioOf, thisMachine } from './result.ts';
import { type BenchOptions, NotHereError } from './scenario.ts';
import { SCENARIOS } from './scenarios.ts';

const RESULTS = join(import.meta.dirname, 'results');
/** What others may use of the machine, in cores, before it is said. */
const QUIET_LOAD = 0.5;

const whole = (text: string): number => {
  const value = Number(text);
  if (!Number.isInteger(value) || value < 1) throw new InvalidArgumentError('It has to be 1 or more.');
  return value;
};

function row(figure: Figure) {
  const { ours, peer, unit, note = '' } = figure;
  return {
    ours: amount(median(ours), unit),
    peer: peer ? amount(median(peer.values), unit) : '',
    'beside what': peer?.name ?? '',
    ratio: ratioText(ratioOf(figure)),
    aim: aimText(figure),
    note,
  };
}

/** What went wrong, and what went wrong before it, when all was cleared away after it. */
const told = (error: unknown): string =>
  error instanceof SuppressedError
    ? `${told(error.suppressed)}\n  and then ${told(error.error)}`
    : inspect(error);

/** Measures one scenario and prints it; `undefined`: what it needs is not here, which has been said. */
async function measure(name: string, options: BenchOptions): Promise<Result | undefined> {
  const scenario = SCENARIOS[name];
  if (scenario === undefined) return undefined;
  const { err, out } = { err: process.stderr, out: process.stdout };
  err.write(`${name}: ${scenario.about}\n`);
  const before = loadNow();
  if (before[0] > QUIET_LOAD) {
    err.write(
      `  The machine is busy (load ${before[0]}): times are too long, and ratios hold better than they.\n`,
    );
  }
  const beganAt = new Date();
  const figures: Figure[] = [];
  try {
    await scenario.run((figure) => figures.push(figure), options);
  } catch (error) {
    if (!(error instanceof NotHereError)) process.exitCode = 1;
    const how = error instanceof NotHereError ? 'LEFT OUT' : 'BROKE OFF';
    err.write(`  ${how}: ${error instanceof NotHereError ? error.message : told(error)}\n`);
  }
  if (figures.length === 0) return undefined;
  out.write(`\n${name}: ${scenario.about}\n`);
  new Console(out).table(Object.fromEntries(figures.map((figure) => [figure.what, row(figure)])));
  const load = { before, after: loadNow() };
  const machine = thisMachine();
  const tookSeconds = Math.round((Date.now() - beganAt.getTime()) / 1000);
  const when = { measuredAt: beganAt.toISOString(), tookSeconds };
  out.write(`${machine.cores} × ${machine.cpu}, Node ${machine.node}, load ${before[0]}\n`);
  const { about } = scenario;
  return { scenario: name, about, command: `npm run bench -- ${name}`, ...when, machine, load, figures };
}

// So that what was started ends, too.
process.once('SIGINT', () => process.exit(1));
process.once('SIGTERM', () => process.exit(1));

await new Command('bench')
  .description('Measures the service beside its peers, turn by turn.')
  .addArgument(
    new Argument('[scenarios...]', 'what to measure; without any: all').choices(Object.keys(SCENARIOS)),
  )
  .option(
    '--runs <count>',
    'how often ours and its peer take turns, in place of what each scenario thinks right',
    whole,
  )
  .option('--short', 'within seconds: shows that it works, measures nothing and writes nothing', false)
  .option('--out <dir>', 'where each result is written as JSON', RESULTS)
  .action(async (names: readonly string[], { runs, short, out }) => {
    mkdirSync(out, { recursive: true });
    for (const name of names.length > 0 ? names : Object.keys(SCENARIOS)) {
      const result = await measure(name, { runs, short });
      // After each scenario, so that a run that is broken off is not lost.
      if (result && !short) {
        writeFileSync(join(out, `${name}.json`), `${JSON.stringify(result, undefined, 2)}\n`);
      }
    }
  })
  .parseAsync();
process.exit();
