import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { unreleased, versions, withRelease } from './changelog.ts';
import { ReleaseError } from './error.ts';
import { compareVersions, parseVersion } from './version.ts';
import { placesOf, versionsIn, withVersion } from './version-places.ts';

export interface ReleaseDeps {
  /** The repository's root. */
  readonly root: string;
  /** The current day, in UTC: `2026-11-22`. */
  readonly day: string;
  print(line: string): void;
  /**
   * Records the messages and items that the release sends and stores, and returns the files that it wrote, from the repository.
   */
  record(version: string): readonly string[];
}

/** A file and its new text. */
interface Change {
  readonly path: string;
  readonly text: string;
}

const CHANGELOG = 'CHANGELOG.md';
const NPM_FILES = ['package.json', 'package-lock.json'];

/**
 * Makes a release in the repository: updates the version in all places, turns the unreleased changes into a section of the
 * changelog, then commits and tags. Pushes nothing. With `dryRun` it only prints the steps. Throws `ReleaseError`, with nothing
 * done.
 */
export function release(version: string, dryRun: boolean, deps: ReleaseDeps): void {
  const { root, day, print, record } = deps;
  const git = (...args: readonly string[]) => execFileSync('git', args, { cwd: root, encoding: 'utf8' });
  const read = (path: string) => readFileSync(join(root, path), 'utf8');
  const changelog = read(CHANGELOG);
  const { version: current } = JSON.parse(read('package.json')) as { readonly version: string };
  const tags = git('tag', '--list', 'v*').split('\n').filter(Boolean);
  refuseOrder(version, current, tags);
  refuseChangelog(changelog, version);
  if (git('status', '--porcelain') !== '') {
    throw new ReleaseError('there are changes that are not committed: commit them first, or put them away.');
  }
  const named = placesOf(root).map((path): Change => ({ path, text: readFileSync(path, 'utf8') }));
  const changes: readonly Change[] = [
    { path: join(root, CHANGELOG), text: withRelease(changelog, version, day) },
    ...named
      .filter(({ text }) => versionsIn(text).length > 0)
      .map(({ path, text }) => ({ path, text: withVersion(text, version) })),
  ];
  const changed = [...NPM_FILES, ...changes.map(({ path }) => relative(root, path))];
  const tag = `v${version}`;
  if (dryRun) {
    print(`Would release ${version} after ${current}:`);
    for (const path of changed) print(`  write ${path}`);
    print('  record the messages and stored formats: test/unit/upgrade/written');
    print(`  commit, and tag it ${tag}; nothing is pushed`);
    print(`Release notes:\n\n${unreleased(changelog)}`);
    return;
  }
  try {
    const npm = ['version', version, '--no-git-tag-version', '--allow-same-version', '--ignore-scripts'];
    execFileSync('npm', npm, { cwd: root, stdio: ['ignore', 'ignore', 'pipe'] });
    for (const { path, text } of changes) writeFileSync(path, text);
    git('add', '--', ...changed, ...record(version));
    git('commit', '--quiet', '--message', `Release ${version}`);
  } catch (error) {
    // Nothing is lost: all files were committed before.
    git('reset', '--quiet', '--hard');
    throw error;
  }
  git('tag', '--annotate', tag, '--message', `Release ${version}`);
  print(`Release ${version} is committed and tagged ${tag}. To publish it:`);
  print('  git push origin HEAD:main');
  print(`  git push origin ${tag}    # once CI has passed what the first one pushed`);
}

/** Throws unless the version is higher than all released ones, and not lower than the version in package.json. */
function refuseOrder(text: string, current: string, tags: readonly string[]): void {
  const version = parseVersion(text);
  if (version === undefined) {
    throw new ReleaseError(`${text} is no version: it has to be MAJOR.MINOR.PATCH, as in 0.2.0.`);
  }
  if (tags.includes(`v${text}`)) {
    throw new ReleaseError(`tag v${text} exists, and releases are never changed. Choose a higher version.`);
  }
  for (const tag of tags) {
    const released = parseVersion(tag.slice(1));
    if (released && compareVersions(version, released) < 0) {
      throw new ReleaseError(`${text} is below ${tag.slice(1)}, which is released: take a version above.`);
    }
  }
  const made = parseVersion(current);
  if (made && compareVersions(version, made) < 0) {
    throw new ReleaseError(`${text} is below ${current}, which package.json has: take a version above.`);
  }
}

/** Throws unless the changelog has unreleased changes, and no section of this version. */
function refuseChangelog(changelog: string, version: string): void {
  if (versions(changelog).includes(version)) {
    throw new ReleaseError(`${CHANGELOG} has a section of ${version} already: take a version above.`);
  }
  if (unreleased(changelog) === undefined) {
    throw new ReleaseError(`${CHANGELOG} has no entries below "## Unreleased". Add the changes there.`);
  }
}
