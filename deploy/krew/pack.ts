import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { create } from 'tar';
import { PROJECT_DIR } from '#deploy/build/bundle.ts';
import { sha256 } from '#deploy/build/checksums.ts';
import { putCommandLine } from '#deploy/build/command-line.ts';
import { VERSION } from '#shared/version.ts';

/** The file name of the plugin's archive. */
export const pluginArchive = `kubectl-taintward-v${VERSION}.tar.gz`;

/**
 * Packs the command line into an archive in `directory`, beside the manifest by which krew installs it from `url`. Returns their
 * paths.
 */
export function packPlugin(
  directory: string,
  url: string,
): { readonly archive: string; readonly manifest: string } {
  mkdirSync(directory, { recursive: true });
  const packed = putCommandLine(directory, 'kubectl-taintward');
  const archive = join(directory, pluginArchive);
  // The same sources give the same archive, for any user and time.
  const settings = { portable: true, gzip: { portable: true }, mtime: new Date(0) };
  create({ ...settings, sync: true, file: archive, cwd: directory }, [...packed]);
  const manifest = join(directory, 'taintward.yaml');
  const values: Readonly<Record<string, string>> = { VERSION, URL: url, SHA256: sha256(archive) };
  const template = readFileSync(join(PROJECT_DIR, 'deploy/krew/taintward.yaml'), 'utf8').replace(
    /^#.*\n/,
    '',
  );
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
