import { createHash } from 'node:crypto';
import { chmodSync, copyFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { buildSync } from 'esbuild';
import { create } from 'tar';
import { VERSION } from '#shared/version.ts';

const ROOT = join(import.meta.dirname, '..');
/** Modules that are no ES modules ask for others by `require`. */
const BANNER = `#!/usr/bin/env node
import { createRequire } from 'node:module';
const require = createRequire(import.meta.url);`;

/**
 * Puts the command line into `directory` as one program in an archive, beside the manifest by which krew installs it from
 * `url`. Returns their paths.
 */
export function packPlugin(
  directory: string,
  url: string,
): { readonly archive: string; readonly manifest: string } {
  mkdirSync(directory, { recursive: true });
  const program = join(directory, 'kubectl-taintward');
  buildSync({
    absWorkingDir: ROOT,
    entryPoints: ['functions/cli/main.ts'],
    outfile: program,
    bundle: true,
    minify: true,
    platform: 'node',
    format: 'esm',
    target: 'node22',
    banner: { js: BANNER },
    logLevel: 'error',
  });
  chmodSync(program, 0o755);
  copyFileSync(join(ROOT, 'LICENSE'), join(directory, 'LICENSE'));
  const archive = join(directory, `kubectl-taintward-v${VERSION}.tar.gz`);
  // The same sources give the same archive, whoever packs them and when.
  const settings = { portable: true, gzip: { portable: true }, mtime: new Date(0) };
  create({ ...settings, sync: true, file: archive, cwd: directory }, ['kubectl-taintward', 'LICENSE']);
  const sha256 = createHash('sha256').update(readFileSync(archive)).digest('hex');
  const manifest = join(directory, 'taintward.yaml');
  const values: Readonly<Record<string, string>> = { VERSION, URL: url, SHA256: sha256 };
  const template = readFileSync(join(ROOT, 'krew/taintward.yaml'), 'utf8').replace(/^#.*\n/, '');
  writeFileSync(
    manifest,
    template.replace(/\$\{(\w+)\}/g, (_, name: string) => values[name] ?? ''),
  );
  return { archive, manifest };
}

if (import.meta.main) {
  const [directory, url] = process.argv.slice(2);
  if (directory === undefined || url === undefined) {
    process.stderr.write(
      'npm run pack:kubectl -- DIRECTORY URL: where to put it, and where krew will find the archive\n',
    );
    process.exit(64);
  }
  const { archive, manifest } = packPlugin(resolve(directory), url);
  process.stdout.write(`${archive}\n${manifest}\n`);
}
