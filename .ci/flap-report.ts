import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** What the testbed's `flap` prints. */
interface Flap {
  readonly evictions: number;
  readonly whileTainted: number;
  readonly afterUntaint: number;
  readonly neverTainted: number;
  readonly lastStrayMs: number;
  readonly missed: number;
  readonly latencyMs: { readonly p50: number; readonly p99: number };
}

/** An eviction that was under way when the taint went may end this much later. */
const MAX_STRAY_MS = 1000;

const [dir = '.'] = process.argv.slice(2);
const fileOf = (who: string, cycles: number) => join(dir, `${who}-${cycles}.json`);
const read = (who: string, cycles: number): Flap => JSON.parse(readFileSync(fileOf(who, cycles), 'utf8'));

const rows = ['ours', 'in-cluster', 'built-in']
  .filter((who) => existsSync(fileOf(who, 1)))
  .flatMap((who) => [1, 3].map((cycles) => ({ who, cycles, ...read(who, cycles) })));
process.stdout.write('100 pods, taint flapping 1 s on, 1 s off\n');
for (const { who, cycles, latencyMs, ...row } of rows) {
  const figures = Object.entries({ ...row, p50: latencyMs.p50, p99: latencyMs.p99 });
  process.stdout.write(
    `  ${who}, ${cycles} cycles: ${figures.map(([name, value]) => `${name} ${value}`).join(', ')}\n`,
  );
}
const wrong = rows.filter(
  ({ who, neverTainted, missed, lastStrayMs, whileTainted }) =>
    who !== 'built-in' &&
    (neverTainted > 0 || missed > 0 || lastStrayMs > MAX_STRAY_MS || whileTainted === 0),
);
if (wrong.length > 0) {
  process.stderr.write('the service evicted pods it should not have, or missed some\n');
  process.exit(1);
}
