import { readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { PROJECT_DIR } from '#deploy/build/bundle.ts';
import { VERSION } from '#shared/version.ts';
import { notesOf, versions } from './changelog.ts';
import { ReleaseError } from './error.ts';
import { placesOf, versionsIn } from './version-places.ts';

/**
 * Returns the changelog's notes for the release of `tag`. Throws `ReleaseError` unless the tag, package.json, all other places of
 * the version, and the newest section of the changelog have the same version.
 */
export function notesFor(tag: string): string {
  if (tag !== `v${VERSION}`) {
    throw new ReleaseError(`the tag is ${tag}, and package.json has ${VERSION}: tag by npm run release.`);
  }
  for (const path of placesOf(PROJECT_DIR)) {
    const other = versionsIn(readFileSync(path, 'utf8')).find((version) => version !== VERSION);
    if (other !== undefined) {
      throw new ReleaseError(
        `${relative(PROJECT_DIR, path)} names ${other}, and package.json ${VERSION}: release by npm run release.`,
      );
    }
  }
  const changelog = readFileSync(join(PROJECT_DIR, 'CHANGELOG.md'), 'utf8');
  const [newest] = versions(changelog);
  if (newest !== VERSION) {
    throw new ReleaseError(`the newest section of CHANGELOG.md is of ${newest}: release by npm run release.`);
  }
  return notesOf(changelog, VERSION) ?? '';
}

if (import.meta.main) {
  const [, , tag = ''] = process.argv;
  try {
    process.stdout.write(`${notesFor(tag)}\n`);
  } catch (error) {
    if (!(error instanceof ReleaseError)) throw error;
    process.stderr.write(`taintward: no release: ${error.message}\n`);
    process.exitCode = 1;
  }
}
