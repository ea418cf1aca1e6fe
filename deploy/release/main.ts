import { execFileSync } from 'node:child_process';
import { copyFileSync } from 'node:fs';
import { join } from 'node:path';
import { Command } from 'commander';
import { PROJECT_DIR } from '#deploy/build/bundle.ts';
import { ReleaseError } from './error.ts';
import { release } from './release.ts';

/* The program of `npm run release`. */

const WRITTEN = 'test/unit/upgrade/written';

new Command('npm run release --')
  .description(
    'Makes a release here: writes the version where it stands, gives the changelog its section, commits and tags. ' +
      'Nothing is pushed (docs/how-to/verify-release.md).',
  )
  .argument('<version>', 'MAJOR.MINOR.PATCH, above the newest that was released')
  .option('--dry-run', 'only say what would be done', false)
  .action((version: string, { dryRun }: { readonly dryRun: boolean }) => {
    try {
      release(version, dryRun, {
        root: PROJECT_DIR,
        day: new Date().toISOString().slice(0, 'YYYY-MM-DD'.length),
        print: (line) => process.stdout.write(`${line}\n`),
        record,
      });
    } catch (error) {
      if (!(error instanceof ReleaseError)) throw error;
      process.stderr.write(`taintward: no release: ${error.message}\n`);
      process.exitCode = 1;
    }
  })
  .parse();

/**
 * Records the messages and items of the new version. They contain the version, so they are written again; afterwards the copy for
 * this release never changes.
 */
function record(version: string): readonly string[] {
  const test = 'test/unit/upgrade/formats.test.ts';
  const args = ['--test', '--test-update-snapshots', test];
  execFileSync(process.execPath, args, { cwd: PROJECT_DIR, stdio: ['ignore', 'ignore', 'inherit'] });
  const [next, released] = [`${WRITTEN}/unreleased.json`, `${WRITTEN}/${version}.json`];
  copyFileSync(join(PROJECT_DIR, next), join(PROJECT_DIR, released));
  return [next, released];
}
