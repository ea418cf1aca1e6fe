import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { type PageFiles, readPageFiles, writePage } from '#shared/console/page-files.ts';
import { aPage } from './served-console.ts';

test('serves each package that a page imports by name, with its own imports', (t) => {
  servesItsImports(readPageFiles(aPage(t)));
});

test('serves each module that the page of this release imports', () => {
  servesItsImports(readPageFiles());
});

function servesItsImports(page: PageFiles): void {
  const html = page.document.body.toString();
  const map = /<script type="importmap">(.*?)<\/script>/.exec(html)?.[1] ?? '';
  assert.equal(page.inlineHash, `sha256-${createHash('sha256').update(map).digest('base64')}`);
  const { imports } = JSON.parse(map) as { imports: Record<string, string> };
  const prefix = `./assets/${page.version}/`;
  const seen = new Set<string>();
  const follow = (path: string): void => {
    if (seen.has(path)) return;
    seen.add(path);
    const asset = page.asset(path);
    assert.ok(asset, `${path} is not served`);
    assert.equal(asset.type, 'text/javascript; charset=utf-8');
    const code = asset.body.toString().replace(/\/\*[\s\S]*?\*\//g, '');
    for (const [, name = ''] of code.matchAll(/(?:\bfrom|\bimport)\s*["']([^"'\n]+)["']/g)) {
      const target = name.startsWith('.')
        ? new URL(name, `http://a/${path}`).pathname.slice(1)
        : imports[name];
      assert.ok(target, `${path} imports ${name}, which is in no import map`);
      follow(target.replace(prefix, ''));
    }
  };
  follow('main.ts');
  for (const path of Object.values(imports)) follow(path.replace(prefix, ''));
  assert.ok(seen.size > Object.keys(imports).length);
}

test('strips types and serves everything else unchanged', (t) => {
  const warned = t.mock.method(process, 'emitWarning', () => undefined);
  const page = readPageFiles(aPage(t));
  assert.equal(page.asset('styles.css')?.body.toString(), 'body { margin: 0 }');
  const code = page.asset('main.ts')?.body.toString() ?? '';
  assert.doesNotMatch(code, /unknown/);
  assert.equal(warned.mock.callCount(), 0);
  assert.equal(page.asset('main.ts'), page.asset('main.ts'));
  for (const none of ['index.html', '../server.ts', 'main.js', '__proto__', 'packages/preact/package.json']) {
    assert.equal(page.asset(none), undefined, none);
  }
});

test('changes the version in asset names with any change of the page', (t) => {
  const directory = aPage(t);
  const before = readPageFiles(directory).version;
  assert.equal(readPageFiles(directory).version, before);
  writeFileSync(join(directory, 'styles.css'), 'body { margin: 1px }');
  assert.notEqual(readPageFiles(directory).version, before);
});

test('serves a page next to a bundle like the page of the sources, with only the included packages', (t) => {
  const directory = mkdtempSync(join(tmpdir(), 'taintward-page-'));
  t.after(() => rmSync(directory, { recursive: true }));
  writePage(directory);
  const ours = readPageFiles();
  const put = readPageFiles(directory);
  assert.deepEqual(put.document.body.toString(), ours.document.body.toString());
  assert.equal(put.version, ours.version);
  for (const path of ['main.ts', 'icon.svg', 'packages/preact/hooks.mjs', 'packages/preact/preact.mjs']) {
    assert.deepEqual(put.asset(path), ours.asset(path), path);
  }
  assert.ok(put.asset('main.ts'));
});
