import { spawnSync } from 'node:child_process';
import { statSync } from 'node:fs';
import { join } from 'node:path';

/*
 * Installs the dependencies of a single suite from a package of its own: `node test/install.ts FOLDER`, which an npm
 * script runs before its suite. If the installation matches the lockfile, it does nothing.
 */

const [folder] = process.argv.slice(2);
const npm = process.env['npm_execpath'];
if (folder === undefined || npm === undefined) {
  process.stderr.write('usage, in an npm script: node test/install.ts FOLDER\n');
  process.exit(64);
}

const modifiedAt = (file: string): number =>
  statSync(join(folder, file), { throwIfNoEntry: false })?.mtimeMs ?? 0;
if (modifiedAt('node_modules/.package-lock.json') < modifiedAt('package-lock.json')) {
  const args = [npm, 'ci', '--prefix', folder, '--no-audit', '--no-fund'];
  process.exitCode = spawnSync(process.execPath, args, { stdio: 'inherit' }).status ?? 1;
}
