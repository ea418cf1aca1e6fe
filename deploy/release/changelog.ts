/*
 * CHANGELOG.md: below a title, a section `## Unreleased`, then one for each release, `## 0.2.0 - 2026-11-22`, newest first.
 */

const UNRELEASED = 'Unreleased';

interface Section {
  /** What its heading says. */
  readonly heading: string;
  /** What is below it, without blank lines around. */
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

/** What is to be in the next release; `undefined`: nothing. */
export function unreleased(changelog: string): string | undefined {
  return sections(changelog).find(({ heading }) => heading === UNRELEASED)?.text || undefined;
}

/** The versions that it has sections of, newest first. */
export function versions(changelog: string): readonly string[] {
  return sections(changelog)
    .filter(({ heading }) => heading !== UNRELEASED)
    .map(versionOf);
}

/** What it says of a release; `undefined`: it has no section of it. */
export function notesOf(changelog: string, version: string): string | undefined {
  return sections(changelog).find((section) => versionOf(section) === version)?.text;
}

/** The changelog once what was unreleased is `version`, of a day (`2026-11-22`). */
export function withRelease(changelog: string, version: string, day: string): string {
  return changelog.replace(`## ${UNRELEASED}\n`, `## ${UNRELEASED}\n\n## ${version} - ${day}\n`);
}
