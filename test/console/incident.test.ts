import assert from 'node:assert/strict';
import { execSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { PROJECT_DIR } from '#deploy/build/bundle.ts';
import type { Page } from './browser/packages.ts';
import { assertAccessible, assertFits, THEMES, testBrowser, Visitor } from './rig/browser.ts';
import { confirm } from './rig/confirm.ts';
import { Service } from './rig/service.ts';

const browser = testBrowser();
const UNREACHABLE = 'node.kubernetes.io/unreachable:NoExecute';
/** Trips when a node of a zone is down. */
const POLICY = 'mode: enforce\nguard: { cluster: off, zone: { percent: 1%, nodes: 1 } }\n';
let service: Service;
let visitor: Visitor;
let page: Page;

before(async () => {
  service = await Service.start();
  visitor = await Visitor.enter(await browser(), service.link);
  page = visitor.page;
  const act = { kind: 'apply-policy', cluster: 'simulated', text: POLICY, reason: 'a cautious guard' };
  const { confirm: confirmed } = (await post('preview', act)) as { readonly confirm: string };
  await post('acts', { act, confirm: confirmed });
});
after(async () => {
  await visitor?.leave();
  await service?.stop();
});

const post = (route: string, asks: object) =>
  page.evaluate(`fetch('api/session').then((answer) => answer.json()).then(({ token }) => fetch('api/${route}', {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-taintward-token': token },
    body: ${JSON.stringify(JSON.stringify(asks))},
  })).then((answer) => answer.json())`);
const card = (zone: string) => page.locator('.needs li', { hasText: `in zone ${zone}` });
const group = (name: string) => page.locator('[role="table"] [data-key]', { hasText: name });

test('an incident by mouse: its taint, its nodes, a workload on hold, and why', async () => {
  for (const node of ['node-1', 'node-2']) await post('demo/taint', { node, taint: UNREACHABLE });
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

test('an incident by keyboard alone: why, a workload on hold and tolerating, one zone released, and a policy rolled back', async () => {
  const { keyboard } = page;
  const press = async (text: string | RegExp) => {
    await visitor.tabTo(text);
    await keyboard.press('Enter');
  };
  /** Presses a button, enters a reason in its dialog, and confirms. */
  const act = async (text: string | RegExp, verb: string, reason: string) => {
    await press(text);
    const dialog = page.getByRole('dialog');
    await dialog.locator('.says li').first().waitFor();
    await keyboard.type(reason);
    await press(verb);
    await dialog.waitFor({ state: 'hidden' });
  };
  await visitor.go('#/');
  await page.reload();
  await press(/^Pending/);
  await visitor.tabTo(/^Group by/);
  await keyboard.type('workload');
  for (const name of ['StatefulSet/db', 'Deployment/checkout']) {
    await group(name).waitFor();
    await visitor.tabTo(`Select default/${name}`);
    await keyboard.press('Space');
  }
  for (const [verb, next] of [
    ['Hold', 'Release'],
    ['Release', 'Hold'],
  ] as const) {
    await act(new RegExp(`^${verb} in simulated`), verb, 'both are debugged');
    await page.locator(':focus', { hasText: `${next} in simulated` }).waitFor();
  }
  await press('default/Deployment/checkout');
  await group('default/checkout-').first().waitFor();
  await keyboard.press('j');
  await keyboard.press('Enter');
  const verdict = page.locator('.verdict');
  await verdict.getByText(/guard/).waitFor();
  await act('Hold Deployment checkout', 'Hold', 'is debugged');
  await verdict.getByText('is debugged').waitFor();
  await page.locator(':focus', { hasText: 'Release hold' }).waitFor();

  // A toleration of running pods moves their deadlines.
  await press('Tolerations');
  await visitor.tabTo(/^Applies to/);
  await keyboard.press('ArrowDown');
  await page.getByText('of the pods').first().waitFor();
  await page.getByRole('table', { name: 'Pods' }).waitFor();
  await press('Add toleration');
  for (const field of ['Remove', 'Seconds', 'Effect', 'Value', 'Operator', 'Key']) {
    await keyboard.press('Shift+Tab');
    if (field === 'Seconds') await keyboard.type('3600');
    if (field === 'Key') await keyboard.type(UNREACHABLE.split(':')[0] ?? '');
  }
  await page.getByText('[0] 1h').waitFor();
  await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
  await press(/^Copy command/);
  await page.getByText('Copied').waitFor();
  const command = String(await page.evaluate('navigator.clipboard.readText()'))
    .replace(/^taintward/, `"${process.execPath}" functions/cli/main.ts`)
    .replace('CONTEXT', 'simulated --yes');
  const KUBECONFIG = join(service.state, 'cluster/simulated-cluster.kubeconfig');
  execSync(command, {
    cwd: PROJECT_DIR,
    env: { ...process.env, TAINTWARD_STATE_DIR: service.state, KUBECONFIG },
  });
  await press(/^Pending/);
  await group('default/checkout-')
    .first()
    .getByText(/^(1h|[45]\dm)/)
    .waitFor();

  await press('Overview');
  await press(/^What if .*zone-a$/);
  await card('zone-a').locator('.says li').nth(1).waitFor();
  await act(/^Release guard of simulated for zone\/zone-a/, 'Release guard', 'it stays down');
  await card('zone-a').waitFor({ state: 'detached' });
  await card('zone-b').waitFor();
  await page.locator('.needs :focus', { hasText: 'simulated' }).waitFor();

  const effects = page.locator('.editor .says');
  const apply = async (reason: string) => {
    await page.getByRole('button', { name: 'Apply policy' }).waitFor();
    await act('Apply policy', 'Apply', reason);
    await page.locator(':focus', { hasText: 'Edit policy' }).waitFor();
  };
  await press('Rules');
  await page.getByRole('button', { name: 'Edit policy' }).waitFor();
  await press('Edit policy');
  await keyboard.press('Control+End');
  await keyboard.type('releaseRate: 7');
  await effects.getByText('releaseRate: 50 → 7').waitFor();
  await apply('as agreed');
  await press('Restore revision 2');
  await effects.getByText('releaseRate: 7 → 50').waitFor();
  await assertAccessible(page, 'policy editor');
  await apply('not agreed');
  const audit = page.getByRole('table', { name: 'Audit log' });
  for (const reason of ['as agreed', 'not agreed']) await audit.getByText(reason, { exact: true }).waitFor();

  await press('History');
  const downloaded = page.waitForEvent('download');
  await press('Download CSV');
  const csv = readFileSync(await (await downloaded).path(), 'utf8');
  const at = [`${UNREACHABLE} on 2 nodes`, 'serves the sale', 'it stays down'].map((text) =>
    csv.indexOf(text),
  );
  assert.deepEqual([at.includes(-1), at.toSorted((a, b) => a - b)], [false, at]);
});
