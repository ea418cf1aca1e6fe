import { copyFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join, resolve } from 'node:path';
import { billOfProject } from '#deploy/build/bill-of-materials.ts';
import { PROJECT_DIR } from '#deploy/build/bundle.ts';
import { writeChecksums } from '#deploy/build/checksums.ts';
import { packPlugin, pluginArchive } from '#deploy/krew/pack.ts';
import { VERSION } from '#shared/version.ts';
import { releaseForAws } from './aws-template.ts';
import { packChart } from './chart-archive.ts';
import { packForNpm } from './npm-package.ts';
import { filesUrl } from './project.ts';

const AWS_TEMPLATE = 'taintward-aws.template.json';
const ACCESS_TEMPLATE = 'taintward-cluster-access.template.yaml';

/**
 * Creates the files of a release in `directory`: the npm package of the command line, the archive and manifest of kubectl's
 * plugin, the chart, the template for AWS with the archives of its functions, and the one for clusters' accounts. Adds the bill of
 * materials of the whole project, and the checksums of all these files. The same sources give the same files.
 */
export function makeFiles(directory: string): void {
  mkdirSync(directory, { recursive: true });
  packForNpm(directory);
  packChart(directory);
  writeFileSync(join(directory, AWS_TEMPLATE), `${JSON.stringify(releaseForAws(directory))}\n`);
  copyFileSync(join(PROJECT_DIR, 'deploy/cluster-access.yaml'), join(directory, ACCESS_TEMPLATE));
  const bill = JSON.stringify(billOfProject(), undefined, 2);
  writeFileSync(join(directory, `taintward-${VERSION}.cdx.json`), `${bill}\n`);
  const plugin = mkdtempSync(join(tmpdir(), 'taintward-plugin-'));
  try {
    for (const file of Object.values(packPlugin(plugin, `${filesUrl(VERSION)}/${pluginArchive}`))) {
      copyFileSync(file, join(directory, basename(file)));
    }
  } finally {
    rmSync(plugin, { recursive: true });
  }
  writeChecksums(directory);
}

if (import.meta.main) {
  const [, , directory] = process.argv;
  if (directory === undefined) {
    process.stderr.write('npm run release:files -- DIRECTORY: where to make them\n');
    process.exit(64);
  }
  makeFiles(resolve(directory));
}
