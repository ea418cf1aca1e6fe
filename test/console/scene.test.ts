import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { assertAccessible, assertFits, PHONE, THEMES, testBrowser, Visitor } from './rig/browser.ts';
import { confirm } from './rig/confirm.ts';
import { openNamed } from './rig/named.ts';
import { openScene } from './rig/scene.ts';

const browser = testBrowser();

const MANY = 10_000;
const VIEWS = ['', 'nodes', 'pending', 'history', 'what-if', 'rules/prod-eu'];
/** As long as a name of a namespace can be, and without a place to break it. */
const LONG = 'n'.repeat(63);
const CONNECTIONS_OF_A_BROWSER = 6;
/** Simulates that a tab becomes visible or hidden. */
const SHOWN_AS = (state: 'visible' | 'hidden') => `
  Object.defineProperty(document, 'visibilityState', { value: '${state}', configurable: true });
  document.dispatchEvent(new Event('visibilitychange'));
`;
/** A screen shows about thirty rows. */
const MAX_ROWS_IN_DOCUMENT = 60;

test('ten thousand countdowns scroll with few rows in the document, are found, sorted, and counted, and only changed rows are rendered', async (t) => {
  const scene = await openScene(t, MANY);
  t.after(() => scene.close());
  const visitor = await Visitor.enter(await browser(), scene.link());
  const { page } = visitor;
  const table = page.getByRole('table', { name: 'Pending evictions' });
  const rows = table.locator('[data-key]');

  const versions: Promise<{ readonly version: number }>[] = [];
  page.on('response', (response) => {
    if (response.url().includes('/api/pending')) versions.push(response.json());
  });
  await page.reload();
  await visitor.go('#/pending');
  await rows.first().waitFor();
  await page.getByLabel('Pod, node, or taint').fill('frontend');
  await page.getByText(/^[\d,]+ pods of 10,007 pods/).waitFor();
  await page.getByLabel('Pod, node, or taint').fill('');
  await page.getByText('10,007 pods with a pending eviction').waitFor();

  assert.equal(await table.getAttribute('aria-rowcount'), '10008');
  assert.ok((await rows.count()) <= MAX_ROWS_IN_DOCUMENT, `${await rows.count()} rows`);
  await page.getByRole('heading', { level: 1 }).focus();
  await page.keyboard.press('End');
  await table.locator('[aria-rowindex="10008"]').waitFor();
  assert.ok((await rows.count()) <= MAX_ROWS_IN_DOCUMENT, `${await rows.count()} rows`);
  await page.keyboard.press('Home');
  await table.locator('[aria-rowindex="2"]').waitFor();

  const due = table.getByRole('columnheader', { name: 'Due' });
  assert.equal(await due.getAttribute('aria-sort'), 'ascending');
  await due.getByRole('button').click();
  await table
    .getByRole('columnheader', { name: 'Due' })
    .and(page.locator('[aria-sort="descending"]'))
    .waitFor();

  const changed = rows.filter({ hasText: 'scheduled' }).first();
  const key = await changed.getAttribute('data-key');
  await page.evaluate(`
    rendered = new Set();
    new MutationObserver((changes) => {
      for (const { target } of changes) rendered.add(target.closest('[data-key]')?.dataset.key);
    }).observe(document.querySelector('[role="table"] > .body'), { childList: true, subtree: true });
  `);
  await confirm(page, changed.getByRole('button', { name: 'Hold' }), 'is debugged');
  await table.locator(`[data-key="${key}"]`).getByText('on hold').waitFor();
  assert.deepEqual(await page.evaluate('[...rendered]'), [key]);
  const read = (await Promise.all(versions)).map(({ version }) => version);
  assert.deepEqual(read, [...new Set(read)], 'a version is read twice');
  await visitor.leave();
});

test('the focused row stays in the document at any scroll position', async (t) => {
  const scene = await openScene(t, 1_000);
  t.after(() => scene.close());
  const visitor = await Visitor.enter(await browser(), scene.link());
  const { page } = visitor;
  await visitor.go('#/pending');
  const first = page.locator('[aria-rowindex="3"] a').first();
  await first.focus();
  await page.keyboard.press('End');
  await page.locator('[aria-rowindex="1008"]').waitFor();
  assert.equal(await first.evaluate((link) => link === link.ownerDocument.activeElement), true);
  await visitor.leave();
});

test('keys search, go from row to row, and are shown, and fields keep theirs', async (t) => {
  const scene = await openScene(t, 1_000);
  t.after(() => scene.close());
  const visitor = await Visitor.enter(await browser(), scene.link());
  const { page } = visitor;
  const keyboard = page.keyboard;
  const focused = (inside: string) => page.locator(`${inside}:focus, ${inside}:has(:focus)`).waitFor();
  await visitor.go('#/pending');
  await page.locator('[aria-rowindex="3"]').waitFor();
  await keyboard.press('/');
  await keyboard.type('j/k?');
  assert.equal(await page.getByLabel('Pod, node, or taint').inputValue(), 'j/k?');
  await page.getByLabel('Pod, node, or taint').fill('frontend');
  await keyboard.press('Escape');
  for (let row = 2; row < 50; row++) {
    await keyboard.press('j');
    await focused(`[aria-rowindex="${row}"]`);
  }
  await keyboard.press('k');
  await focused('[aria-rowindex="48"]');
  await keyboard.press('?');
  await page
    .getByRole('status')
    .getByText(/Escape leaves it/)
    .waitFor();
  await keyboard.press('Enter');
  await page.getByRole('heading', { level: 1, name: /frontend/ }).waitFor();
  await visitor.leave();
});

test('every view has no violation that axe finds, in both themes, on a desk and on a phone', async (t) => {
  const scene = await openScene(t);
  t.after(() => scene.close());
  for (const colorScheme of THEMES) {
    // The layout does not depend on the theme.
    for (const viewport of colorScheme === 'light' ? [undefined, PHONE] : [undefined]) {
      const visitor = await Visitor.enter(await browser(), scene.link(), {
        colorScheme,
        ...(viewport ? { viewport } : {}),
      });
      const { page } = visitor;
      for (const view of VIEWS) {
        await visitor.go(`#/${view}`);
        await page.locator('[role="table"] [data-key], .empty').first().waitFor();
        await assertAccessible(page, `${view} ${colorScheme} ${viewport ? 'phone' : 'desk'}`);
        const overflow = await page.evaluate('document.documentElement.scrollWidth - window.innerWidth');
        assert.ok(Number(overflow) <= 0, `${view} is ${overflow} px too wide`);
      }
      await visitor.leave();
    }
  }
});

for (const [names, open] of [
  ['usual', openScene],
  ['long', (t: TestContext) => openNamed(t, LONG, LONG)],
] as const)
  test(`no view is wider than its window, with ${names} names`, async (t) => {
    const scene = await open(t);
    t.after(() => scene.close());
    const visitor = await Visitor.enter(await browser(), scene.link());
    const { page } = visitor;
    for (const view of [...VIEWS, `pod/${LONG}/${LONG}/${LONG}`, `node/${LONG}/${LONG}`]) {
      await visitor.go(`#/${view}`);
      await page.locator('[role="table"] [data-key], .empty, .failed').first().waitFor();
      await assertFits(page, view);
    }
    await visitor.go('#/pending');
    const suffix = `(() => {
      const link = document.querySelector('[role="table"] [data-column="pod"] a');
      const range = document.createRange();
      range.selectNode(link.lastChild);
      return range.getBoundingClientRect().right <= link.closest('[role="cell"]').getBoundingClientRect().right;
    })()`;
    await page.setViewportSize({ width: 1440, height: 800 });
    await page.locator('[role="table"] [data-column="pod"] a').first().waitFor();
    assert.equal(await page.evaluate(suffix), true, 'the end of a name is cut off');
    await page.getByRole('button', { name: 'Stop all' }).click();
    await page.locator('.says li').first().waitFor();
    await assertFits(page, 'dialog');
    await visitor.leave();
  });

test("more tabs than a browser's connections to a server all receive updates, because hidden tabs wait", async (t) => {
  const scene = await openScene(t);
  t.after(() => scene.close());
  const visitor = await Visitor.enter(await browser(), scene.link());
  const first = visitor.page;
  let last = first;
  for (let tab = 0; tab < CONNECTIONS_OF_A_BROWSER; tab++) {
    await last.getByText('live', { exact: true }).first().waitFor();
    await last.evaluate(SHOWN_AS('hidden'));
    last = await visitor.another();
  }
  await last.getByText('live', { exact: true }).first().waitFor();
  await last.evaluate(SHOWN_AS('hidden'));
  await first.evaluate(SHOWN_AS('visible'));
  await first.getByRole('link', { name: 'History' }).click();
  await first.locator('[role="table"] [data-key]').first().waitFor();
  await visitor.leave();
});
