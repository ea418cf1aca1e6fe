import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { PROJECT_DIR } from '#deploy/build/bundle.ts';

const DIR = join(PROJECT_DIR, '.github', 'workflows');
const workflows = readdirSync(DIR).filter((name) => /\.ya?ml$/.test(name));
/** An action of another repository, pinned to a commit, with the version of the commit. */
const PINNED = /^\s*(- )?uses: [\w.-]+\/[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$/;

test('each workflow pins every action to a commit, with its version in a comment', () => {
  assert.ok(workflows.length > 1);
  for (const name of workflows) {
    const uses = readFileSync(join(DIR, name), 'utf8')
      .split('\n')
      .filter((line) => /^\s*(- )?['"]?uses['"]?\s*:/.test(line));
    assert.ok(uses.length > 0, name);
    for (const line of uses) assert.match(line, PINNED, `${name}: ${line.trim()}`);
  }
});

test('a version of an action is the same commit in all workflows', () => {
  const commits = new Map<string, Set<string>>();
  for (const name of workflows) {
    for (const [, action = '', commit = '', version = ''] of readFileSync(join(DIR, name), 'utf8').matchAll(
      /uses: (\S+)@(\S+) # (\S+)/g,
    )) {
      const key = `${action} ${version}`;
      commits.set(key, (commits.get(key) ?? new Set()).add(commit));
    }
  }
  for (const [key, found] of commits) assert.equal(found.size, 1, key);
});
