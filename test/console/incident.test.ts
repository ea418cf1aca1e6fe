import assert from 'node:assert/strict';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import type { Page } from './browser/packages.ts';
import { assertAccessible, assertFits, THEMES, testBrowser, Visitor } from './rig/browser.ts';
import { confirm } from './rig/confirm.ts';
import { Service } from './rig/service.ts';

const browser = testBrowser();
const UNREACHABLE = 'node.kubernetes.io/unreachable:NoExecute';
/** Trips when a node of a zone is down. */
const POLICY = 'mode: enforce\nguard: { cluster: off, zone: { percent: 1%, nodes: 1 } }\n';
const policy = join(tmpdir(), `incident-${process.pid}.yaml`);
let service: Service;
let visitor: Visitor;
let page: Page;

before(async () => {
  writeFileSync(policy, POLICY);
  service = await Service.start('--policy', policy);
  visitor = await Visitor.enter(await browser(), service.link);
  page = visitor.page;
});
after(async () => {
  await visitor?.leave();
  await service?.stop();
  rmSync(policy);
});

const taint = (node: string) =>
  page.evaluate(`fetch('api/session').then((answer) => answer.json()).then(({ token }) => fetch('api/demo/taint', {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-taintward-token': token },
    body: '${JSON.stringify({ node, taint: UNREACHABLE })}',
  }))`);
const card = (zone: string) => page.locator('.needs li', { hasText: `in zone ${zone}` });
const group = (name: string) => page.locator('[role="table"] [data-key]', { hasText: name });

test('an incident by mouse: its taint, its nodes, a workload on hold, and why', async () => {
  for (const node of ['node-1', 'node-2']) await taint(node);
  await card('zone-b').getByText(UNREACHABLE).waitFor();
  await card('zone-a').getByRole('link', { name: 'Show nodes' }).click();
  await group('node-2').getByText(UNREACHABLE).waitFor();
  await visitor.go('#/');
  await card('zone-a').getByRole('link', { name: 'Hold a workload' }).click();
  assert.equal(await page.getByLabel('Group by').inputValue(), 'workload');
  const web = group('default/Deployment/web');
  await confirm(page, web.getByRole('button', { name: 'Hold' }), 'serves the sale');
  await web.getByRole('button', { name: 'Release' }).waitFor();
  await web.getByRole('link').click();
  await group('default/web-').first().getByRole('link').first().click();
  await page.locator('.verdict').getByText('serves the sale').waitFor();
});

test('the views of an incident have no violation that axe finds, and fit their windows', async () => {
  for (const view of ['#/', '#/pending?by=workload', '#/history']) {
    await visitor.go(view);
    await page.locator('[role="table"] [data-key]').first().waitFor();
    const box = page.getByRole('checkbox').first();
    if (view.includes('pending')) await box.check();
    for (const colorScheme of THEMES) {
      await page.emulateMedia({ colorScheme });
      await assertAccessible(page, `${view} ${colorScheme}`);
    }
    await assertFits(page, view);
    await page.setViewportSize({ width: 1440, height: 900 });
  }
});

test('an incident by keyboard: a selection on hold and released, and one zone released after a preview', async () => {
  await visitor.go('#/pending?by=workload');
  for (const name of ['db', 'checkout']) {
    await group(name).getByRole('checkbox').focus();
    await page.keyboard.press('Space');
  }
  for (const act of ['Hold', 'Release']) {
    await page.getByRole('button', { name: `${act} in simulated` }).focus();
    await page.keyboard.press('Enter');
    await submit('both are debugged');
    await group('checkout')
      .getByRole('button', { name: act === 'Hold' ? 'Release' : 'Hold' })
      .waitFor();
  }
  await visitor.go('#/');
  await card('zone-a')
    .getByRole('button', { name: /^What if/ })
    .focus();
  await page.keyboard.press('Enter');
  await card('zone-a').locator('.says li').nth(1).waitFor();
  await page.keyboard.press('Tab');
  await page.keyboard.press('Enter');
  await submit('it stays down');
  await card('zone-a').waitFor({ state: 'detached' });
  await card('zone-b').waitFor();

  await page.getByRole('link', { name: 'History' }).click();
  const downloaded = page.waitForEvent('download');
  await page.getByRole('link', { name: 'Download CSV' }).click();
  const csv = readFileSync(await (await downloaded).path(), 'utf8');
  const at = [`${UNREACHABLE} on 2 nodes`, 'serves the sale', 'it stays down'].map((text) =>
    csv.indexOf(text),
  );
  assert.deepEqual([at.includes(-1), at.toSorted((a, b) => a - b)], [false, at]);
});

/** Enters a reason in a dialog, and confirms, by keyboard. */
async function submit(reason: string): Promise<void> {
  const dialog = page.getByRole('dialog');
  await dialog.locator('.says li').first().waitFor();
  await page.keyboard.type(reason);
  await dialog.locator('[type="submit"]:enabled').waitFor();
  await dialog.locator('[type="submit"]').focus();
  await page.keyboard.press('Enter');
  await dialog.waitFor({ state: 'hidden' });
}
