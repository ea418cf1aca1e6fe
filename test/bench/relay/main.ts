import { Console } from 'node:console';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { cpus, loadavg } from 'node:os';
import { Argument, Command, InvalidArgumentError } from 'commander';
import type { BenchOptions, Figure } from './figure.ts';
import { NoQuotaError } from './measured-process.ts';
import { SCENARIOS } from './scenarios.ts';

/** Figures by what they are of, as `--json` keeps them. */
type Figures = Record<string, Figure>;

/** What others may use of the machine, in cores, before it is said. */
const QUIET_LOAD = 0.5;

const number = (text: string): number => {
  const value = Number(text);
  if (!(value > 0)) throw new InvalidArgumentError('It has to be a number above 0.');
  return value;
};

const written = (value: number | undefined, unit: string): string =>
  value === undefined
    ? '–'
    : `${Number(value.toPrecision(value < 100 ? 3 : 4)).toLocaleString('en')} ${unit}`;

function row(figure: Figure, before: Figure | undefined, compared: boolean) {
  const { value, unit, aim, note = '' } = figure;
  const holds = value !== undefined && aim !== undefined && value <= aim;
  return {
    ...(compared ? { before: before ? written(before.value, unit) : '' } : {}),
    measured: written(value, unit),
    aim: aim === undefined ? '' : `≤ ${written(aim, unit)} ${holds ? '✓' : '✗'}`,
    note,
  };
}

async function measure(
  names: readonly string[],
  options: BenchOptions,
  keep: (figures: Figures) => void,
): Promise<Figures> {
  const figures: Figures = {};
  const tell = (figure: Figure): void => {
    figures[figure.what] = figure;
    const { what, value, unit, note = '' } = figure;
    process.stderr.write(`  ${what}: ${written(value, unit)}${note ? ` (${note})` : ''}\n`);
  };
  for (const name of names) {
    const scenario = SCENARIOS[name];
    if (scenario === undefined) continue;
    process.stderr.write(`${name}: ${scenario.about}\n`);
    try {
      await scenario.run(tell, options);
    } catch (error) {
      const leftOut = error instanceof NoQuotaError;
      process.stderr.write(`  ${name} ${leftOut ? 'left out' : 'broke off'}: ${(error as Error).message}\n`);
      if (!leftOut) process.exitCode = 1;
    }
    keep(figures);
  }
  return figures;
}

/** Writes figures to a file, in place of those of the same name. */
function keep(file: string, figures: Figures): void {
  const known: Figures = existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')) : {};
  writeFileSync(file, `${JSON.stringify({ ...known, ...figures }, undefined, 2)}\n`);
}

const everything = Object.keys(SCENARIOS).filter((name) => !SCENARIOS[name]?.onlyByName);

// So that what was started ends, too.
process.once('SIGINT', () => process.exit(1));
process.once('SIGTERM', () => process.exit(1));

await new Command('bench:relay')
  .description('Measures the watch relay against synthetic API servers.')
  .addArgument(
    new Argument('[scenarios...]', 'what to measure; without any: all but the soak').choices(
      Object.keys(SCENARIOS),
    ),
  )
  .option('--cap <seconds>', 'how long to wait for what may never come', number, 60)
  .option('--minutes <minutes>', 'how long the soak takes', number, 120)
  .option('--json <file>', 'write the figures to this file, in place of those of the same name')
  .option('--before <file>', 'a file of figures to compare with')
  .action(async (scenarios: readonly string[], { cap, minutes, json, before }) => {
    const names = scenarios.length > 0 ? scenarios : everything;
    const [load = 0] = loadavg();
    if (load > QUIET_LOAD) {
      process.stderr.write(`The machine is busy (load ${load.toFixed(1)}): all times will be too long.\n`);
    }
    const options = { capMs: cap * 1000, soakMs: minutes * 60_000 };
    // After each scenario, so that a run that is broken off is not lost.
    const figures = await measure(names, options, (sofar) => json !== undefined && keep(json, sofar));
    const earlier: Figures = before === undefined ? {} : JSON.parse(readFileSync(before, 'utf8'));
    const rows = Object.entries(figures).map(([what, figure]) => [
      what,
      row(figure, earlier[what], before !== undefined),
    ]);
    new Console(process.stdout).table(Object.fromEntries(rows));
    process.stdout.write(
      `${cpus().length} × ${cpus()[0]?.model}, Node ${process.version}, load at the start ${load.toFixed(1)}\n`,
    );
  })
  .parseAsync();
process.exit();
