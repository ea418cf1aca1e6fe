/*
 * CHANGELOG.md: below a title, a section `## Unreleased`, then one for each release, `## 0.2.0 - 2026-11-22`, newest first.
 */

const UNRELEASED = 'Unreleased';

interface Section {
  /** The text of the section's heading. */
  readonly heading: string;
  /** The text below the heading, without blank lines around it. */
  readonly text: string;
}

const sections = (changelog: string): readonly Section[] =>
  changelog
    .split(/^## /m)
    .slice(1)
    .map((section) => {
      const [heading = '', ...lines] = section.split('\n');
      return { heading, text: lines.join('\n').trim() };
    });

const versionOf = ({ heading }: Section): string => heading.split(' ')[0] ?? '';

/** Returns the changes of the next release; `undefined`: there are none. */
export function unreleased(changelog: string): string | undefined {
  return sections(changelog).find(({ heading }) => heading === UNRELEASED)?.text || undefined;
}

/** Returns the versions that have a section, newest first. */
export function versions(changelog: string): readonly string[] {
  return sections(changelog)
    .filter(({ heading }) => heading !== UNRELEASED)
    .map(versionOf);
}

/** Returns the notes of a release; `undefined`: it has no section. */
export function notesOf(changelog: string, version: string): string | undefined {
  return sections(changelog).find((section) => versionOf(section) === version)?.text;
}

/** Returns the changelog after the release of `version` on a day (`2026-11-22`): the unreleased changes become its section. */
export function withRelease(changelog: string, version: string, day: string): string {
  return changelog.replace(`## ${UNRELEASED}\n`, `## ${UNRELEASED}\n\n## ${version} - ${day}\n`);
}
