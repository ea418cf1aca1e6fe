import { appendFileSync, globSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { join, sep } from 'node:path';
import { run } from 'node:test';
import { spec } from 'node:test/reporters';
import { pathToFileURL } from 'node:url';
import failuresReporter, { failureText } from '../failures-reporter.ts';

/*
 * Entry point of `npm test`. Starting Node.js and loading the product for each file took most of the time, so the files
 * of a folder share a process, and so do all folders of few files. `npm test -- kubernetes eviction` runs only two
 * folders. `node --test FILE` runs a single file.
 */

const HERE = import.meta.dirname;
/** Name for the files outside folders. */
const LOOSE = '.';
/** Folders of at most this many files share one process. */
const FEW_FILES = 10;
const FEW = 'few';
/** Limit for all processes together, which normally take a minute. A process that does not end by itself fails the run. */
const MAX_MS = 20 * 60_000;

const named = process.argv.slice(2);
const roomOf = (file: string): string => (file.includes(sep) ? (file.split(sep)[0] ?? LOOSE) : LOOSE);
const all = Map.groupBy(globSync('**/*.test.ts', { cwd: HERE }).toSorted(), roomOf);
const unknown = named.filter((room) => !all.has(room));
if (unknown.length > 0) {
  process.stderr.write(
    `test/unit has no room ${unknown.join(', ')}: there are ${[...all.keys()].join(', ')}\n`,
  );
  process.exit(64);
}

const entries = mkdtempSync(join(tmpdir(), 'taintward-unit-'));

/** Writes an entry file that loads the files of a process one after the other. */
function entryOf(name: string, files: readonly string[]): string {
  const quoted = (path: string) => JSON.stringify(path);
  const url = (name: string) => quoted(pathToFileURL(join(HERE, name)).href);
  const lines = [
    `import ${url('untracked-resources.ts')};`,
    `const { fileSuite } = await import(${url('file-suite.ts')});`,
    ...files.map((file) => `await fileSuite(${quoted(join(HERE, file))});`),
  ];
  const entry = join(entries, `${name === LOOSE ? 'loose' : name}.test.mjs`);
  writeFileSync(entry, lines.join('\n'));
  return entry;
}

const chosen = [...all].filter(([room]) => named.length === 0 || named.includes(room));
const processes = Map.groupBy(chosen, ([room, found]) => (found.length > FEW_FILES ? room : FEW));
const files = [...processes]
  .map(([name, rooms]) => ({ name, found: rooms.flatMap(([, found]) => found) }))
  // Largest first, so that no large process runs alone at the end.
  .toSorted((one, other) => other.found.length - one.found.length)
  .map(({ name, found }) => entryOf(name, found));

// A timeout of the runner does not end a process that hangs after its tests, so that they would pass.
const signal = AbortSignal.timeout(MAX_MS);
const running = run({ files, concurrency: availableParallelism(), signal }).once('end', () =>
  rmSync(entries, { recursive: true }),
);
running.compose(spec).pipe(process.stdout);

/** As in `test/suite.ts`: a file to which the failures are also added. */
const { TAINTWARD_FAILURES } = process.env;
running
  .on('test:fail', () => {
    process.exitCode = 1;
  })
  .compose(failuresReporter)
  .on('data', (line) => {
    const failure = JSON.parse(String(line));
    if (!('error' in failure)) return;
    process.exitCode = 1;
    process.stdout.write(`${failureText(failure)}\n`);
    if (TAINTWARD_FAILURES) appendFileSync(TAINTWARD_FAILURES, `${failureText(failure)}\n`);
  });
