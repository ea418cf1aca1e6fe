import { copyFileSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { type Made, writeBill } from '#deploy/build/bill-of-materials.ts';
import { bundleProgram, PROGRAM_NAMES, PROJECT_DIR, type ProgramName } from '#deploy/build/bundle.ts';
import { LICENCE_TEXTS_FILE, licenceTexts } from '#deploy/build/licence-texts.ts';
import { PAGE_PACKAGES, writePage } from '#shared/console/page-files.ts';

/** The files that the simulated cluster reads beside its code. */
const READ_BY_SERVICE = ['simulator/api/protobuf-messages.json'];

/** The files beside a program, for the programs that need any. */
const BESIDE: Partial<Record<ProgramName, readonly string[]>> = { service: PAGE_PACKAGES };

/** The file of a program's bill of materials in CycloneDX; image scanners read it by this name. */
export const billFile = (name: ProgramName): string => `${name}.cdx.json`;

/**
 * The image's content except Node.js: programs with source maps and bills of materials, the console's page and other
 * data files, and licenses. The same sources give the same files.
 */
export function bundleImage(outDir: string): void {
  const made = PROGRAM_NAMES.map((name): Made => {
    const one: Made = { metafile: bundleProgram(name, outDir), beside: BESIDE[name] ?? [] };
    writeBill(one, join(outDir, billFile(name)));
    return one;
  });
  for (const file of READ_BY_SERVICE) copyFileSync(join(PROJECT_DIR, file), join(outDir, basename(file)));
  writePage(join(outDir, 'page'));
  writeFileSync(join(outDir, LICENCE_TEXTS_FILE), licenceTexts(...made));
  copyFileSync(join(PROJECT_DIR, 'LICENSE'), join(outDir, 'LICENSE'));
}

if (import.meta.main) {
  const [, , outDir] = process.argv;
  if (outDir === undefined) {
    process.stderr.write('usage: node cdk/bundle-image.ts DIRECTORY\n');
    process.exit(1);
  }
  bundleImage(outDir);
}
