import assert from 'node:assert/strict';
import { globSync, readFileSync, statSync } from 'node:fs';
import { join, relative } from 'node:path';
import { describe, test } from 'node:test';
import { GATE_KINDS } from '#shared/explain/gate-text.ts';
import { policyJsonSchema } from '#shared/state/policy-document.ts';
import * as metrics from '#shared/telemetry/metrics.ts';

const ROOT = join(import.meta.dirname, '../../..');
const INTERNALS = join(ROOT, 'docs/internals');

const textOf = (page: string): string => readFileSync(join(INTERNALS, page), 'utf8');

/** Links of names in code, like `ClusterView.nodeDelta`, to files. */
const namesIn = (page: string) =>
  [...textOf(page).matchAll(/\[`([\w.]+)`\]\(([^)#\s]+)\)/g)]
    .map(([, name = '', target = '']) => ({ name, file: join(INTERNALS, target) }))
    .filter(({ name, file }) => statSync(file).isFile() && !file.endsWith(`/${name}`));

/** Everything but the pages and schemas that `npm run docs` generates. */
const WRITTEN = [
  '{functions,shared,cdk,deploy,test}/**/*.{ts,tpl,yaml,snapshot}',
  'docs/{concepts,how-to,integrations}/**/*.{md,yaml}',
];

const { properties: settings } = policyJsonSchema() as { readonly properties: object };

const runbooks = readFileSync(join(ROOT, 'docs/how-to/runbooks.md'), 'utf8');
const alarmTitles = [...runbooks.matchAll(/^## (.+)$/gm)].map(([, title = '']) => title);

/** All names of a kind, by the kind's line of the page: a new one must be added to each file that has all names. */
const KINDS: readonly (readonly [line: string, names: readonly string[]])[] = [
  ['a policy setting', Object.keys(settings)],
  ['a rule that holds evictions', GATE_KINDS],
  ['an alarm', alarmTitles],
  ['a metric', Object.keys(metrics)],
];

/** Returns the targets of the links in a line of the page's table. */
const linkedFrom = (line: string): readonly string[] => {
  const text = textOf('architecture.md')
    .split('\n')
    .find((each) => each.startsWith(`| ${line} |`));
  return [...(text ?? '').matchAll(/\]\(([^)#\s]+)\)/g)].map(([, target = '']) =>
    relative(ROOT, join(INTERNALS, target)),
  );
};

describe('the table of changes', () => {
  const texts = globSync(WRITTEN, { cwd: ROOT, exclude: ['**/node_modules/**'] }).map(
    (file) => [file, readFileSync(join(ROOT, file), 'utf8')] as const,
  );

  for (const [line, names] of KINDS) {
    test(`links each file with all of the ${names.length} names of: ${line}`, () => {
      const listing = texts.filter(([, text]) => names.every((name) => new RegExp(`\\b${name}`).test(text)));
      assert.ok(listing.length > 1, `no two files have ${names.join(', ')}`);
      const linked = linkedFrom(line);
      const missing = listing
        .map(([file]) => file)
        .filter((file) => !linked.some((target) => file === target || file.startsWith(`${target}/`)));
      assert.deepEqual(missing, [], `link them in the line "${line}" of docs/internals/architecture.md`);
    });
  }
});

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
    const files = globSync('*.ts', { cwd: join(ROOT, 'shared/kubernetes/http') });
    assert.deepEqual(listed, new Set(files));
  });
});
