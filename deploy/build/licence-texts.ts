import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Made, packageFolders } from './bill-of-materials.ts';
import { PROJECT_DIR } from './bundle.ts';

/** The file that contains the license texts. */
export const LICENCE_TEXTS_FILE = 'THIRD_PARTY_LICENSES.txt';

/** The names of the files in packages that have to be redistributed with them. */
const TEXTS = /licen[cs]e|copying|notice/i;
const RULE = `\n${'-'.repeat(80)}\n\n`;

interface Manifest {
  readonly name: string;
  readonly version: string;
  readonly license?: string;
  readonly author?: string | { readonly name?: string };
}

/**
 * Returns the license texts that have to be redistributed with the packages: each text once, below the packages that it applies
 * to. For a package without a text, the license and author are named.
 */
export function licenceTexts(...made: readonly Made[]): string {
  const folders = [...new Set(made.flatMap(packageFolders))].toSorted();
  const packagesOf = new Map<string, string[]>();
  for (const folder of folders) {
    const path = join(PROJECT_DIR, folder);
    const { name, version, license, author }: Manifest = JSON.parse(
      readFileSync(join(path, 'package.json'), 'utf8'),
    );
    const files = readdirSync(path).filter((file) => TEXTS.test(file));
    const own = files.toSorted().map((file) => readFileSync(join(path, file), 'utf8').trim());
    const by = typeof author === 'string' ? author : author?.name;
    const text =
      own.join('\n\n') || `Licence: ${license}${by ? `; by ${by}` : ''}. Its archive has no text of it.`;
    const sharing = packagesOf.get(text) ?? [];
    packagesOf.set(text, [...sharing, `${name}@${version}`]);
  }
  return [...packagesOf].map(([text, packages]) => `${packages.join('\n')}\n\n${text}\n`).join(RULE);
}
