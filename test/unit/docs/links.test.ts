import assert from 'node:assert/strict';
import { existsSync, globSync, readFileSync, statSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { describe, test } from 'node:test';
import { PROJECT_DIR } from '#deploy/build/bundle.ts';

const PAGES = globSync('**/*.md', {
  cwd: PROJECT_DIR,
  exclude: (name) => /(^|\/)(node_modules|cdk\.out|\.git)$/.test(name),
});
const CODE = globSync('{functions,shared,simulator,cdk,deploy,docs,test,bin}/**/*.{ts,js,yaml,txt}', {
  cwd: PROJECT_DIR,
  exclude: (name) => /(^|\/)(node_modules|cdk\.out)$/.test(name),
});
const SCHEME = /^[a-z]+:/;

const textOf = (file: string): string => readFileSync(join(PROJECT_DIR, file), 'utf8');

/** Returns the text without fenced and inline code, in which brackets are not links. */
const proseOf = (text: string): string =>
  text.replaceAll(/^ *```.*?^ *```$/gms, '').replaceAll(/(`+)[^`].*?\1/g, '');

/** Returns the targets of links in brackets, reference definitions, and HTML. */
const linksOf = (text: string): readonly string[] =>
  [...proseOf(text).matchAll(/\]\(([^)\s]+)[^)]*\)|^\[[^\]]+\]: (\S+)|(?:src|srcset|href)="([^"]+)"/gm)]
    .map(([, inline, reference, html]) => inline ?? reference ?? html ?? '')
    .filter((target) => !SCHEME.test(target));

/** Returns the anchors that GitHub derives from headings. Repeated headings get a number. */
function anchorsOf(text: string): ReadonlySet<string> {
  const anchors = new Set<string>();
  for (const [, heading = ''] of text.replaceAll(/^```.*?^```$/gms, '').matchAll(/^#+ (.*)$/gm)) {
    const bare = heading
      .replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1')
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N}_\- ]/gu, '')
      .replaceAll(' ', '-');
    let anchor = bare;
    for (let count = 1; anchors.has(anchor); count++) anchor = `${bare}-${count}`;
    anchors.add(anchor);
  }
  return anchors;
}

/** Returns why a link is broken, or `undefined`. */
function faultOf(page: string, target: string): string | undefined {
  const [path = '', anchor] = target.split('#');
  const file = path === '' ? page : relative('', join(dirname(page), decodeURI(path)));
  if (!existsSync(join(PROJECT_DIR, file))) return `${page}: there is no ${target}`;
  if (anchor === undefined || statSync(join(PROJECT_DIR, file)).isDirectory() || !file.endsWith('.md'))
    return undefined;
  return anchorsOf(textOf(file)).has(anchor) ? undefined : `${page}: ${file} has no heading #${anchor}`;
}

describe('links of Markdown pages', () => {
  test('resolve to files and headings that exist', () => {
    assert.ok(PAGES.length > 50);
    const faults = PAGES.flatMap((page) =>
      linksOf(textOf(page)).flatMap((target) => faultOf(page, target) ?? []),
    );
    assert.deepEqual(faults, []);
  });

  test('resolve from the index to every page of the documentation', () => {
    const linked = new Set(linksOf(textOf('docs/README.md')).map((target) => join('docs', target)));
    const pages = PAGES.filter(
      (page) => page.startsWith('docs/') && page !== 'docs/README.md' && !page.includes('/decisions/'),
    );
    assert.deepEqual(
      pages.filter((page) => ![...linked].some((target) => target.split('#')[0] === page)),
      [],
    );
  });
});

test('pages and headings that the code names exist', () => {
  const faults = CODE.flatMap((file) =>
    [...textOf(file).matchAll(/(?<![\w./-])docs\/[\w/-]+\.md(?:#[\w-]+)?/g)].flatMap(
      ([named]) => faultOf('README.md', named) ?? [],
    ),
  );
  assert.deepEqual([...new Set(faults)], []);
});
