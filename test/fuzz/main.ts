import { styleText } from 'node:util';
import { Command, InvalidArgumentError, Option } from 'commander';
import { KINDS } from './kinds.ts';
import type { Report } from './run.ts';

const wholeNumber = (text: string): number => {
  if (/^-?\d{1,15}$/.test(text)) return Number(text);
  throw new InvalidArgumentError('give a whole number.');
};

const names = KINDS.map(({ name }) => name);
const options = new Command('npm run fuzz --')
  .description(
    'Gives hostile inputs to all doors of the service, and looks that each is taken or refused as it should be.',
  )
  .addOption(new Option('--runs <number>', 'inputs of each kind').argParser(wholeNumber).default(1_000))
  .addOption(new Option('--seed <number>', 'which inputs').argParser(wholeNumber).default(1))
  .addOption(new Option('--path <path>', 'of one broken input, as it was reported'))
  .addOption(new Option('--what <kind...>', 'only these kinds').choices(names).default(names, 'all'))
  .option('--json', 'a line of JSON for each kind')
  .allowExcessArguments(false)
  .parse()
  .opts<{ runs: number; seed: number; path?: string; what: readonly string[]; json?: boolean }>();

const COLUMNS: readonly (readonly [string, (report: Report) => string])[] = [
  ['inputs', ({ runs }) => String(runs)],
  ['accepted', ({ accepted }) => String(accepted)],
  ['refused', ({ refused }) => String(refused)],
  ['seconds', ({ seconds }) => seconds.toFixed(0)],
  ['slowest', ({ slowest }) => slowest.toFixed(1)],
  ['heap +MiB', ({ grownMebibytes }) => grownMebibytes.toFixed(1)],
  ['peak MiB', ({ peakMebibytes }) => peakMebibytes.toFixed(0)],
];
const line = (name: string, cells: readonly string[]) =>
  `${name.padEnd(12)}${cells.map((cell) => cell.padStart(10)).join('')}\n`;

if (!options.json)
  process.stdout.write(
    line(
      'kind',
      COLUMNS.map(([title]) => title),
    ),
  );
for (const kind of KINDS.filter(({ name }) => options.what.includes(name))) {
  const { runs, seed, path } = options;
  const report = await kind.fuzz({ runs, seed, ...(path === undefined ? {} : { path }) });
  const text = options.json
    ? `${JSON.stringify(report)}\n`
    : line(
        kind.name,
        COLUMNS.map(([, cell]) => cell(report)),
      );
  process.stdout.write(text);
  if (report.broken === undefined) continue;
  process.stderr.write(`${styleText('red', kind.name)}: ${report.broken}\n`);
  process.exitCode = 1;
}
if (!options.json)
  process.stdout.write(
    'slowest: processor time of one input, over that of reading and writing 1 MB of JSON here\n',
  );
