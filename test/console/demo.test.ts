import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { clusterName, type NodeName, nodeName } from '#shared/eviction/identity.ts';
import { SqliteStore } from '#shared/state/sqlite/sqlite-store.ts';
import { STORE_FILE } from '#shared/state/sqlite/state-directory.ts';
import { commitUnderLock } from '#shared/state/store.ts';
import { systemClock } from '#shared/time/clock.ts';
import type { Locator, Page } from './browser/packages.ts';
import { assertAccessible, assertFits, DESKTOP, THEMES, testBrowser, Visitor } from './rig/browser.ts';
import { confirm } from './rig/confirm.ts';
import { Service } from './rig/service.ts';

const browser = testBrowser();
let service: Service;
let visitor: Visitor;
let page: Page;

before(async () => {
  service = await Service.start();
  visitor = await Visitor.enter(await browser(), service.link);
  page = visitor.page;
});
after(async () => {
  await visitor?.leave();
  await service?.stop();
});

/** Returns the pods of a workload on a node, as the demo's card of that node shows them. */
const onCard = (node: string, workload: string) =>
  page.locator('.demo > li', { hasText: node }).getByRole('link', { name: new RegExp(`^${workload}-`) });

/** The consequences in a dialog, which arrive after it opens. */
const preview = (dialog: Locator) => dialog.locator('.says li').first();

const row = (pod: string) => page.locator('[role="table"] [data-key]', { hasText: pod });

test('the first minute: a click taints a node, a pod counts down and is evicted, and another one is held and released', async () => {
  for (const node of ['node-1', 'node-2']) {
    await page.getByRole('button', { name: `Taint ${node}` }).click();
    await page.getByRole('button', { name: `Untaint ${node}` }).waitFor();
  }
  const goes = (await onCard('node-1', 'checkout').first().textContent()) ?? '';
  const stays = (await onCard('node-2', 'checkout').first().textContent()) ?? '';
  const soonest = page.locator('.soonest li', { hasText: goes });
  await soonest.getByText(/^[0-3]?\ds$/).waitFor();

  await page.getByRole('link', { name: /^Pending/ }).click();
  await row(goes).getByText('scheduled', { exact: true }).waitFor();
  await confirm(page, row(stays).getByRole('button', { name: 'Hold' }), 'is being debugged');
  await page
    .getByRole('status')
    .getByText(/is held\.$/)
    .waitFor();

  await row(goes).waitFor({ state: 'detached' });
  await row(stays).getByText('on hold').waitFor();
  // The pod is due, too.
  await row(stays).getByText(/ ago$/).waitFor();
  await row(stays)
    .getByRole('link', { name: new RegExp(stays) })
    .click();
  await page.getByRole('heading', { level: 1, name: stays }).waitFor();
  await page
    .locator('.verdict')
    .getByText(/is held by hold h\w+ \(.*: is being debugged\)/)
    .waitFor();
  await confirm(page, page.getByRole('button', { name: /^Release hold/ }), 'is debugged');
  await page
    .locator('.verdict')
    .getByText(/was (evicted|deleted)/)
    .waitFor();

  await page.getByRole('link', { name: 'History' }).click();
  await page.getByLabel('Pod').fill(stays);
  await page.getByLabel('Event').selectOption('evicted');
  await row(stays).getByText('evicted').waitFor();
  await page.getByText('1 entry', { exact: true }).waitFor();
  await page.getByLabel('Event').selectOption('held');
  await row(stays)
    .getByText(/hold h/)
    .waitFor();
  await page.getByLabel('Pod').fill('nobody');
  await page.getByText('No matching entries').waitFor();
});

test('untainting by click cancels countdowns, and history shows it', async () => {
  await visitor.go('#/');
  for (const node of ['node-1', 'node-2'])
    await page.getByRole('button', { name: `Untaint ${node}` }).click();
  await page.getByRole('button', { name: 'Taint node-3' }).click();
  const saved = (await onCard('node-3', 'checkout').first().textContent()) ?? '';
  await page.locator('.soonest li', { hasText: saved }).waitFor();
  await page.getByRole('button', { name: 'Untaint node-3' }).click();
  await page.locator('.soonest li', { hasText: saved }).waitFor({ state: 'detached' });
  await visitor.go(`#/history?pod=${saved}`);
  await row(saved).getByText('canceled', { exact: true }).waitFor();
});

test('all evictions are stopped, with a reason, and resumed by keyboard alone', async () => {
  await visitor.go('#/');
  await page.getByRole('heading', { level: 1, name: 'Overview' }).waitFor();
  await visitor.tabTo('Stop all');
  await page.keyboard.press('Enter');
  const dialog = page.getByRole('dialog');
  await preview(dialog).waitFor();
  await page.keyboard.type('incident 4711');
  await page.keyboard.press('Escape');
  await dialog.waitFor({ state: 'hidden' });
  // The focus returns to the button after a canceled dialog.
  assert.equal(await visitor.focusedText(), 'Stop all');

  await page.keyboard.press('Enter');
  await preview(dialog).waitFor();
  await page.keyboard.type('incident 4711');
  await page.keyboard.press('Tab');
  await page.keyboard.press('Tab');
  await page.keyboard.press('Tab');
  assert.equal(await visitor.focusedText(), 'Stop all');
  await page.keyboard.press('Enter');
  const banner = page.locator('.banner', { hasText: 'incident 4711' });
  await banner.waitFor();
  await page.locator('.needs li', { hasText: 'incident 4711' }).waitFor();
  // Nothing behind the dialog has the focus before it closes.
  await dialog.waitFor({ state: 'hidden' });

  await page.getByRole('heading', { level: 1 }).focus();
  await page.keyboard.press('Shift+Tab');
  assert.equal(await visitor.focusedText(), 'Resume');
  await page.keyboard.press('Enter');
  await page
    .getByRole('dialog')
    .getByText(/are resumed/)
    .waitFor();
  await page.keyboard.type('it is over');
  await page.keyboard.press('Tab');
  await page.keyboard.press('Tab');
  await page.keyboard.press('Enter');
  await banner.waitFor({ state: 'detached' });
});

test('a canceled dialog followed immediately by another one shows the other one', async () => {
  await visitor.go('#/');
  await page.getByRole('button', { name: 'Stop all' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.waitFor();
  // A dialog fires its close event shortly after it closed.
  await page.evaluate(`
    const stop = [...document.querySelectorAll('button')].find((each) => each.innerText.trim() === 'Stop all');
    document.querySelector('dialog').close();
    stop.click();
    new Promise((resolve) => { setTimeout(resolve, 200); })`);
  await preview(dialog).waitFor();
  await page.keyboard.press('Escape');
  await dialog.waitFor({ state: 'hidden' });
});

test('stories, dialogs, and the demo have no violation that axe finds, in both themes', async () => {
  const nodes = { light: 'node-4', dark: 'node-3' };
  for (const colorScheme of THEMES) {
    const node = nodes[colorScheme];
    await page.emulateMedia({ colorScheme });
    await visitor.go('#/');
    await page.getByRole('button', { name: `Taint ${node}` }).click();
    await page.locator('.soonest li', { hasText: 'checkout' }).getByRole('link').first().click();
    await page.locator('.verdict').waitFor();
    await assertAccessible(page, `story of a pod ${colorScheme}`);
    // The dialog of a pod that stays indefinitely.
    await visitor.go('#/');
    await onCard(node, 'logs').click();
    await page.getByRole('button', { name: 'Hold pod' }).click();
    await page
      .getByRole('dialog')
      .getByText(/is held\.$/)
      .waitFor();
    await assertAccessible(page, `dialog ${colorScheme}`);
    await page.keyboard.press('Escape');
    await visitor.go(`#/node/simulated/${node}`);
    await page.getByRole('table', { name: 'Pods of the node' }).waitFor();
    await assertAccessible(page, `story of a node ${colorScheme}`);
    await visitor.go('#/');
    await page.getByRole('button', { name: `Untaint ${node}` }).waitFor();
    await assertAccessible(page, `demo ${colorScheme}`);
    await page.getByRole('button', { name: `Untaint ${node}` }).click();
    await page.getByRole('button', { name: `Taint ${node}` }).waitFor();
  }
});

test('a forecast shows the effects of a taint, with the budgets that it would break', async () => {
  await page.getByRole('link', { name: 'What if' }).click();
  await page.getByRole('textbox', { name: 'Taint' }).fill('maintenance:NoExecute');
  await page.getByLabel(/^Nodes/).fill('topology.kubernetes.io/zone=zone-a');
  await page.keyboard.press('Enter');
  await page.getByText('maintenance:NoExecute on 2 nodes').waitFor();
  await page
    .getByRole('table', { name: 'Workloads' })
    .locator('[data-key="default/Deployment/web"]')
    .waitFor();
  await page.getByRole('heading', { name: 'What breaks' }).waitFor();
  await page.getByLabel(/^Nodes/).fill('node-9');
  await page.getByRole('button', { name: 'Preview' }).click();
  await page.getByRole('alert').waitFor();
});

test('the rules of a cluster, and its audit log, are shown', async () => {
  await page.getByRole('link', { name: 'Rules' }).click();
  await page
    .getByLabel('Policy document')
    .getByText(/mode: enforce/)
    .waitFor();
  await page.getByRole('table', { name: 'Audit log' }).getByText('incident 4711').first().waitFor();
  await confirm(page, page.getByRole('button', { name: 'Stop', exact: true }), 'upgrade');
  await confirm(page, page.getByRole('button', { name: 'Resume' }).first(), 'upgraded');
  await page.getByRole('button', { name: 'Stop', exact: true }).waitFor();
});

test('a policy is changed as text and as a form by keyboard alone', async () => {
  await visitor.go('#/rules/simulated');
  const document = page.getByRole('textbox', { name: 'Policy document' });
  const effects = page.locator('.editor .says');
  await page.getByRole('heading', { level: 1, name: 'Rules of simulated' }).focus();
  await visitor.tabTo('Edit policy');
  await page.keyboard.press('Enter');
  await document.waitFor();
  await page.keyboard.press('Control+End');
  await page.keyboard.type('rate: 1\nguard: { zone: { nodes: -1 } }');
  await effects.getByText(/^policy\.guard\.zone\.nodes /).waitFor();
  await effects.getByText(/ rate: /).waitFor();
  for (const colorScheme of THEMES) {
    await page.emulateMedia({ colorScheme });
    await assertAccessible(page, `faults ${colorScheme}`);
  }
  await page.keyboard.press('Control+A');
  await page.keyboard.type('mode: enforce # as agreed\nexclude:\n- namespaces: [kube-*]\n');
  // A button that the server's answer brings.
  await page.getByRole('button', { name: 'Count selected pods' }).waitFor();
  await visitor.tabTo('Count selected pods');
  await page.keyboard.press('Enter');
  await effects.getByText(/^exclude\[0\] selects \d+ of \d+ pods\.$/).waitFor();
  // The second edit follows before the first is answered.
  await visitor.tabTo('guard.cluster.percent');
  await page.keyboard.type('30');
  await page.keyboard.press('Tab');
  await page.keyboard.type('4');
  await page.keyboard.press('Enter');
  for (const change of ['percent: 20 → 30', 'nodes: 3 → 4'])
    await effects.getByText(`guard.cluster.${change}`).waitFor();
  await visitor.tabTo('releaseRate');
  await page.keyboard.type('7');
  await page.keyboard.press('Enter');
  await effects.getByText('releaseRate: 50 → 7').waitFor();
  assert.match(
    await document.inputValue(),
    /^mode: enforce # as agreed\nexclude:\n.*kube-\*\]\nguard:\n(.*\n)+releaseRate: 7\n$/,
  );
  await assertFits(page, 'policy editor');
  await page.setViewportSize(DESKTOP);
  await visitor.tabTo('Cancel');
  await page.keyboard.press('Enter');
  await document.waitFor({ state: 'detached' });
  assert.equal(await visitor.focusedText(), 'Edit policy');
});

test('a failed eviction requires action, and is retried by click, with a reason', async () => {
  await visitor.go('#/');
  const pod = page
    .locator('.demo > li')
    .getByRole('link', { name: /^checkout-/ })
    .first();
  const lost = (await pod.textContent()) ?? '';
  const card = page.locator('.demo > li', { hasText: lost });
  const [node = ''] = /node-\d/.exec((await card.textContent()) ?? '') ?? [];
  await page.getByRole('button', { name: `Taint ${node}` }).click();
  await page.locator('.soonest li', { hasText: lost }).waitFor();
  await giveUp(nodeName(node), lost);
  await page
    .locator('.needs li', { hasText: 'eviction failed' })
    .getByRole('link', { name: 'Show pods' })
    .click();
  await row(lost).getByText('failed', { exact: true }).waitFor();
  await visitor.go(`#/node/simulated/${node}`);
  await page.getByRole('button', { name: 'Retry' }).waitFor();

  await visitor.go('#/');
  const need = page.locator('.needs li', { hasText: 'eviction failed' });
  await need.getByRole('button', { name: 'Retry in simulated' }).click();
  await page.getByRole('dialog').getByText('1 failed eviction is retried in cluster simulated.').waitFor();
  await page.keyboard.press('Escape');
  await confirm(page, need.getByRole('button', { name: 'Retry in simulated' }), 'the webhook is mended');
  await page.getByRole('status').getByText('1 failed eviction is retried in cluster simulated.').waitFor();
  await need.waitFor({ state: 'detached' });

  await visitor.go(`#/history?pod=${lost}`);
  await row(lost).getByText('failed', { exact: true }).first().waitFor();
  await row(lost).getByText('evicted').waitFor();
  await visitor.go('#/');
  await page.getByRole('button', { name: `Untaint ${node}` }).click();
  await visitor.go('#/rules/simulated');
  await page.getByRole('table', { name: 'Audit log' }).getByText('the webhook is mended').waitFor();
});

test('a list of tolerations is checked as it is typed, and previewed with the commands that make the change', async () => {
  const node = page.locator('.demo > li', { has: page.getByRole('link', { name: /^checkout-/ }) }).first();
  await visitor.go('#/');
  await node.getByRole('button', { name: /^Taint/ }).click();
  await page.locator('.soonest li', { hasText: 'checkout' }).getByRole('link').first().click();
  await page.getByRole('link', { name: 'Tolerations' }).click();
  const pods = page.getByRole('table', { name: 'Pods' });
  await pods.getByText(/^evicted in \d+s$/).waitFor();
  await page.getByRole('button', { name: 'Add toleration' }).click();
  const second = page.getByRole('group', { name: 'Toleration 1' });
  await second.getByLabel('Key').fill('maintenance');
  await second.getByLabel('Value').fill('x');
  await second.getByRole('alert').waitFor();
  await pods.waitFor({ state: 'detached' });
  await second.getByLabel('Value').fill('');
  await second.getByLabel('Seconds').fill('3600');
  await second.getByText('shadowed').waitFor();
  await second.getByRole('button', { name: 'Up' }).click();
  await pods
    .getByText(/^evicted in (1h|59m)/)
    .first()
    .waitFor();
  await page.getByText(/^kubectl patch deployment checkout .*"tolerationSeconds":3600/).waitFor();
  await page
    .getByText(/^taintward tolerations default\/Deployment\/checkout .*seconds=3600.* --apply$/)
    .waitFor();
  // The service's own console changes nothing.
  await page.getByText(/taintward console --context/).waitFor();
  // Not while the button is pressed.
  await page.mouse.move(0, 0);
  await assertAccessible(page, 'tolerations');
  await page.getByLabel('Applies to').selectOption('pods');
  await page.getByText('of the pods').first().waitFor();
  await assertFits(page, 'tolerations');
  await visitor.go('#/');
  const untaint = page.getByRole('button', { name: /^Untaint/ });
  await untaint.click();
  await untaint.waitFor({ state: 'detached' });
});

test('stories and previews are no wider than their window, with long names', async () => {
  await visitor.go('#/');
  const card = page.locator('.demo > li', { has: page.getByRole('link', { name: /^checkout-/ }) }).first();
  const story = await card
    .getByRole('link', { name: /^checkout-/ })
    .first()
    .getAttribute('href');
  const [node = ''] = /node-\d/.exec((await card.textContent()) ?? '') ?? [];
  await page.getByRole('button', { name: `Taint ${node}` }).click();
  await page.route(/api\/(explain|what-if)/, async (route) => {
    const response = await route.fetch();
    const body = (await response.text()).replaceAll('checkout', `checkout${'n'.repeat(200)}`);
    await route.fulfill({ response, body });
  });
  for (const view of [`${story}`, `#/node/simulated/${node}`, '#/what-if?taint=long:NoExecute']) {
    await visitor.go(view);
    if (view.includes('what-if')) await page.getByRole('button', { name: 'Preview' }).click();
    await page.locator('main').getByText(/nnnn/).first().waitFor();
    await assertFits(page, view);
  }
  await visitor.go('#/');
  await page.getByRole('button', { name: `Untaint ${node}` }).waitFor();
  await assertFits(page, 'demo');
});

/** Marks a pod's eviction as failed, as after four days of failures. */
async function giveUp(node: NodeName, pod: string): Promise<void> {
  const store = new SqliteStore({ path: join(service.state, STORE_FILE) });
  const ref = { cluster: clusterName('simulated'), node };
  await commitUnderLock(store, ref, undefined, systemClock, ({ scheduled }) => {
    const now = systemClock.now();
    const record = [...scheduled.values()].find(({ name }) => name === pod);
    assert.ok(record, `${pod} is not to be evicted`);
    const failure = { since: record.startedAt, error: 'a webhook refuses it' };
    const schedule = [{ ...record, failure, gaveUpAt: now }];
    return { result: undefined, change: { schedule, end: [], live: true } };
  });
  store.close();
}
