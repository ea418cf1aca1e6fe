import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Made, packageFolders } from './bill-of-materials.ts';
import { PROJECT_DIR } from './bundle.ts';

/** The file that they are passed on in. */
export const LICENCE_TEXTS_FILE = 'THIRD_PARTY_LICENSES.txt';

/** How packages name the files that whoever passes them on has to pass on, too. */
const TEXTS = /^(licen[cs]e|copying|notice)/i;
const RULE = `\n${'-'.repeat(80)}\n\n`;

interface Manifest {
  readonly name: string;
  readonly version: string;
  readonly license?: string;
  readonly author?: string | { readonly name?: string };
}

/**
 * What the licences of the packages within want to be passed on with them: their texts, each once, below the packages that it is of.
 * Of a package whose archive has no text, its licence and author are named.
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
