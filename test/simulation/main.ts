import { writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { Command, InvalidArgumentError, Option } from 'commander';
import pMap from 'p-map';
import { CLIMATES, type Climate, type ClimateName } from './climates.ts';
import { HISTORY_KINDS, type HistoryKind, sweepKind } from './history-kinds.ts';
import { hunt, PLANTED, UNTIL_CAUGHT } from './planted.ts';
import { plantedReport, report, violationReport } from './report.ts';
import type { Shrunk } from './shrink.ts';
import { simulate } from './simulate.ts';
import { NO_SWEEP, type Sweep, together } from './sweep.ts';
import type { Common } from './worker.ts';
import { WorkerPool } from './worker-pool.ts';

/** The seeds that a worker plays before it reports the result. */
const CHUNK = 10;
/** The number of failing histories that are shortened. */
const SHRUNK = 3;
const PROGRESS_MS = 5_000;

interface Options {
  readonly histories: number;
  readonly seed: number;
  readonly parallel?: number | true;
  readonly climate?: readonly ClimateName[];
  readonly governed?: boolean;
  readonly set?: Partial<Climate>;
  readonly without?: readonly number[];
  readonly story?: true;
  readonly planted?: string | true;
  readonly json?: string;
  readonly kind?: HistoryKind;
}

const options: Options = new Command()
  .name('npm run simulate --')
  .description(
    'Plays random histories of the whole service in a simulated world that goes wrong, and holds it against its promises.',
  )
  .option('--histories <number>', 'how many to play', wholeNumber, 1)
  .option('--seed <number>', 'the first one', wholeNumber, 0)
  .option(
    '--parallel [workers]',
    'by so many workers at a time; without a number: one for each processor',
    wholeNumber,
  )
  .option(
    '--climate <names>',
    `in these in turn, of ${Object.keys(CLIMATES).join(', ')} (default: each seed picks one of the long ones)`,
    climateNames,
  )
  .option(
    '--governed <yes|no>',
    'whether clusters have owners with policies (default: each seed says)',
    yesOrNo,
  )
  .addOption(
    new Option('--kind <kind>', 'histories of another kind, each in a world of its own').choices(
      Object.keys(HISTORY_KINDS),
    ),
  )
  .option('--set <features>', 'change the climate, as in trouble=0,mostPods=1', features)
  .option('--without <numbers>', 'leave out what is planned under these numbers, as in 0-4,7', numbers)
  .option('--story', 'tell what happens in the first one, line by line, and play no other')
  .option(
    '--planted [words]',
    'find defects that are planted in the service, those with these words in their names',
  )
  .option('--json <file>', 'write the result here, too')
  .parse()
  .opts();

const { seed, histories, climate: climates = [], parallel = 1 } = options;
const common: Common = {
  ...(options.governed === undefined ? {} : { governed: options.governed }),
  ...(options.set ? { changed: options.set } : {}),
  ...(options.without ? { leftOut: options.without } : {}),
};
const wanted = parallel === true ? availableParallelism() : parallel;
if (options.kind) await playKind(options.kind);
else if (options.story) await print();
else if (options.planted) await huntAll(options.planted === true ? '' : options.planted);
else await playAll();

/** Prints the story of one history. */
async function print(): Promise<void> {
  const [climate] = climates;
  const { story, faults } = await simulate(seed, { ...common, ...(climate ? { climate } : {}) });
  process.stdout.write([...story, ...faults, ''].join('\n'));
  process.exitCode = faults.length > 0 ? 1 : 0;
}

/** Plays histories of another kind, or prints the story of the first one. */
async function playKind(kind: HistoryKind): Promise<void> {
  if (options.story) {
    const { story, faults } = await (await HISTORY_KINDS[kind]())(seed);
    process.stdout.write([...story, ...faults, ''].join('\n'));
    process.exitCode = faults.length > 0 ? 1 : 0;
    return;
  }
  const seeds = Array.from({ length: histories }, (_, index) => seed + index);
  const { faults, tried } = await sweepKind(kind, seeds);
  const counts = Object.entries(tried).map(([what, count]) => `${what}: ${count}`);
  const broken = `${histories} histories, ${faults.length} broken`;
  process.stdout.write([...counts, ...faults, broken, ''].join('\n'));
  process.exitCode = faults.length > 0 ? 1 : 0;
}

/** Searches for planted defects. */
async function huntAll(words: string): Promise<void> {
  const planted = PLANTED.filter(({ name }) => name.includes(words));
  const caught = await pMap(
    planted,
    async (defect) => {
      const found = await hunt({ name: defect.name, most: UNTIL_CAUGHT });
      process.stderr.write(`${found.fault ? `after ${found.histories}` : 'never'}: ${defect.name}\n`);
      return { ...defect, ...found };
    },
    { concurrency: wanted },
  );
  process.stdout.write(plantedReport(caught));
  if (options.json) writeFileSync(options.json, `${JSON.stringify(caught, null, 2)}\n`);
  process.exitCode = caught.every(({ fault }) => fault !== undefined) ? 0 : 1;
}

/** Plays histories, and shortens those that break a promise. */
async function playAll(): Promise<void> {
  const workers = Math.max(1, Math.min(wanted, Math.ceil(histories / CHUNK)));
  const pool = new WorkerPool(workers, common);
  const begunAt = performance.now();
  let all: Sweep = NO_SWEEP;
  let done = 0;
  let reportedAt = begunAt;
  // An interrupt prints the results up to that time.
  process.once('SIGINT', () => pool.stop());
  await pool.share(chunks(), async (seeds, query) => {
    const found = await query<Sweep>({ seeds, climates });
    all = together(all, found);
    done += seeds.length;
    for (const { seed: failing, faults } of found.violations)
      process.stderr.write(`seed ${failing}: ${faults[0]}\n`);
    if (performance.now() - reportedAt < PROGRESS_MS) return;
    reportedAt = performance.now();
    const perSecond = (done * 1000) / (reportedAt - begunAt);
    process.stderr.write(
      `${done} of ${histories} histories, ${perSecond.toFixed(1)}/s, ${all.violations.length} broken\n`,
    );
  });
  const seconds = (performance.now() - begunAt) / 1000;
  process.stdout.write(report(all, { seed, histories: done, seconds, workers }));
  await pool.share(all.violations.slice(0, SHRUNK), async ({ seed: failing, climate }, query) => {
    const shrunk = await query<Shrunk | undefined>({ shrink: failing, climate });
    if (shrunk) process.stdout.write(violationReport(failing, shrunk));
  });
  await pool.dismiss();
  if (options.json)
    writeFileSync(
      options.json,
      `${JSON.stringify({ seed, histories: done, seconds, workers, ...all }, null, 2)}\n`,
    );
  process.exitCode = all.violations.length > 0 ? 1 : 0;
}

function* chunks(): Generator<readonly number[]> {
  for (let from = seed; from < seed + histories; from += CHUNK) {
    yield Array.from({ length: Math.min(CHUNK, seed + histories - from) }, (_, next) => from + next);
  }
}

function wholeNumber(text: string): number {
  if (!/^\d+$/.test(text)) throw new InvalidArgumentError('it must be a whole number.');
  return Number(text);
}

function climateNames(text: string): readonly ClimateName[] {
  const names = text.split(',');
  const unknown = names.find((name) => !Object.hasOwn(CLIMATES, name));
  if (unknown !== undefined) throw new InvalidArgumentError(`${unknown} is no climate.`);
  return names as readonly ClimateName[];
}

function yesOrNo(text: string): boolean {
  if (text !== 'yes' && text !== 'no') throw new InvalidArgumentError('it must be yes or no.');
  return text === 'yes';
}

function features(text: string): Partial<Climate> {
  return Object.fromEntries(
    text.split(',').map((part) => {
      const [name = '', value = ''] = part.split('=');
      if (!(name in CLIMATES.fair)) throw new InvalidArgumentError(`${name} is no feature of climates.`);
      return [name, JSON.parse(value)];
    }),
  );
}

function numbers(text: string): readonly number[] {
  return text.split(',').flatMap((part) => {
    const [from = 0, to = from] = part.split('-').map(wholeNumber);
    return Array.from({ length: to - from + 1 }, (_, index) => from + index);
  });
}
