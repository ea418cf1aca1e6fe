import { copyFileSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { PAGE_PACKAGES, writePage } from '#shared/console/page-files.ts';
import { writeBill } from './bill-of-materials.ts';
import { bundleCommandLine, PROJECT_DIR } from './bundle.ts';
import { LICENCE_TEXTS_FILE, licenceTexts } from './licence-texts.ts';

/** The oldest Node.js on which the command line runs. */
export const NEEDS_NODE = '22.13';

const BILL_FILE = 'taintward.cdx.json';

/**
 * Writes the command line into `directory` as one program named `program`, with the console's page, its bill of materials and the
 * license texts. Returns the names of all entries of the directory.
 */
export function putCommandLine(directory: string, program: string): readonly string[] {
  mkdirSync(directory, { recursive: true });
  const made = { metafile: bundleCommandLine(program, directory), beside: PAGE_PACKAGES };
  writePage(join(directory, 'page'));
  writeBill(made, join(directory, BILL_FILE));
  writeFileSync(join(directory, LICENCE_TEXTS_FILE), licenceTexts(made));
  copyFileSync(join(PROJECT_DIR, 'LICENSE'), join(directory, 'LICENSE'));
  return [program, 'page', BILL_FILE, LICENCE_TEXTS_FILE, 'LICENSE'];
}
