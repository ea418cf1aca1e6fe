import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { create } from 'tar';
import { PROJECT_DIR } from '#deploy/build/bundle.ts';
import { VERSION } from '#shared/version.ts';

/** The chart, from the repository. */
const CHART = 'deploy/chart';

/**
 * Packs the Helm chart into `directory`, as `helm package` does, but the same sources give the same archive. Returns its path.
 */
export function packChart(directory: string): string {
  const archive = join(directory, `taintward-chart-${VERSION}.tgz`);
  // The archive of a chart has one folder, with the chart's name. Links in the repository become files in the archive.
  const settings = { portable: true, gzip: { portable: true }, mtime: new Date(0), follow: true };
  const cwd = join(PROJECT_DIR, CHART);
  create({ ...settings, sync: true, file: archive, cwd, prefix: 'taintward' }, readdirSync(cwd));
  return archive;
}
