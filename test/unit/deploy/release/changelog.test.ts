import assert from 'node:assert/strict';
import { test } from 'node:test';
import { notesOf, unreleased, versions, withRelease } from '#deploy/release/changelog.ts';

const HEAD = '# Changelog\n\nAll notable changes.\n\n';
const OLDER =
  '## 0.2.0 - 2026-10-01\n\n### Fixed\n\n- A thing.\n\n## 0.1.0 (never released)\n\n- All of it.\n';
const CHANGELOG = `${HEAD}## Unreleased\n\n### Added\n\n- More.\n\n${OLDER}`;

test('moves the Unreleased entries to the section of a release', () => {
  const released = withRelease(CHANGELOG, '0.3.0', '2026-11-22');
  assert.equal(released, `${HEAD}## Unreleased\n\n## 0.3.0 - 2026-11-22\n\n### Added\n\n- More.\n\n${OLDER}`);
  assert.equal(unreleased(CHANGELOG), '### Added\n\n- More.');
  assert.equal(unreleased(released), undefined);
  assert.equal(notesOf(released, '0.3.0'), unreleased(CHANGELOG));
});

test('lists releases newest first, each with its own notes', () => {
  assert.deepEqual(versions(CHANGELOG), ['0.2.0', '0.1.0']);
  assert.equal(notesOf(CHANGELOG, '0.2.0'), '### Fixed\n\n- A thing.');
  assert.equal(notesOf(CHANGELOG, '0.1.0'), '- All of it.');
  assert.equal(notesOf(CHANGELOG, '0.9.0'), undefined);
});

test('returns no unreleased entries without the section', () => {
  assert.equal(unreleased(`${HEAD}${OLDER}`), undefined);
});
