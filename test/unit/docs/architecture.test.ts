import assert from 'node:assert/strict';
import { globSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';

const INTERNALS = join(import.meta.dirname, '../../../docs/internals');

const textOf = (page: string): string => readFileSync(join(INTERNALS, page), 'utf8');

/** Links of names in code, like `ClusterView.nodeDelta`, to files. */
const namesIn = (page: string) =>
  [...textOf(page).matchAll(/\[`([\w.]+)`\]\(([^)#\s]+)\)/g)]
    .map(([, name = '', target = '']) => ({ name, file: join(INTERNALS, target) }))
    .filter(({ name, file }) => statSync(file).isFile() && !file.endsWith(`/${name}`));

describe('pages about the code', () => {
  for (const page of ['architecture.md', 'kubernetes-http.md']) {
    test(`name what their linked files contain: ${page}`, () => {
      const named = namesIn(page);
      assert.ok(named.length > 5);
      const missing = named.flatMap(({ name, file }) => {
        const text = readFileSync(file, 'utf8');
        const absent = name.split('.').filter((part) => !new RegExp(`\\b${part}\\b`).test(text));
        return absent.map((part) => `${part} in ${file}`);
      });
      assert.deepEqual(missing, []);
    });
  }

  test('list each file of the sealed room', () => {
    const page = textOf('kubernetes-http.md');
    const listed = new Set([...page.matchAll(/kubernetes\/http\/([\w-]+\.ts)/g)].map(([, file]) => file));
    const files = globSync('*.ts', { cwd: join(INTERNALS, '../../shared/kubernetes/http') });
    assert.deepEqual(listed, new Set(files));
  });
});
