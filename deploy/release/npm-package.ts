import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  copyFileSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PROJECT_DIR } from '#deploy/build/bundle.ts';
import { NEEDS_NODE, putCommandLine } from '#deploy/build/command-line.ts';
import { VERSION } from '#shared/version.ts';
import { project, REPOSITORY } from './project.ts';

const PROGRAM = 'taintward.mjs';
/** The program that kubectl runs for completions. */
const COMPLETIONS = 'kubectl_complete-taintward';

/**
 * Packs the command line as the npm package `taintward` into `directory`. It depends on no other package: Node.js does not strip
 * types below `node_modules`, so the package holds a bundle. The same sources give the same archive. Returns its path.
 */
export function packForNpm(directory: string): string {
  const folder = mkdtempSync(join(tmpdir(), 'taintward-npm-'));
  try {
    putCommandLine(folder, PROGRAM);
    copyFileSync(join(PROJECT_DIR, 'bin', COMPLETIONS), join(folder, COMPLETIONS));
    chmodSync(join(folder, COMPLETIONS), 0o755);
    const readme = readFileSync(join(import.meta.dirname, 'npm-readme.md'), 'utf8');
    writeFileSync(join(folder, 'README.md'), readme.replaceAll('/blob/main/', `/blob/v${VERSION}/`));
    writeFileSync(join(folder, 'package.json'), `${JSON.stringify(manifest(), undefined, 2)}\n`);
    const args = ['pack', folder, '--pack-destination', directory, '--ignore-scripts', '--silent'];
    execFileSync('npm', args, { cwd: folder, stdio: ['ignore', 'ignore', 'inherit'] });
    const archive = join(directory, `taintward-npm-${VERSION}.tgz`);
    renameSync(join(directory, `taintward-${VERSION}.tgz`), archive);
    return archive;
  } finally {
    rmSync(folder, { recursive: true });
  }
}

const manifest = () => ({
  name: project.name,
  version: VERSION,
  description: `The command line of Taintward: ${project.description}`,
  keywords: ['kubernetes', 'taint', 'eviction', 'NoExecute', 'kubectl-plugin'],
  homepage: `${REPOSITORY}#readme`,
  bugs: `${REPOSITORY}/issues`,
  repository: project.repository,
  license: project.license,
  type: 'module',
  engines: { node: `>=${NEEDS_NODE}` },
  bin: { taintward: PROGRAM, 'kubectl-taintward': PROGRAM, [COMPLETIONS]: COMPLETIONS },
});
