import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { once } from '#shared/time/cache.ts';
import { systemClock } from '#shared/time/clock.ts';
import { startSimulatedCluster } from '#simulator/cluster.ts';
import { testBrowser, Visitor } from './rig/browser.ts';
import { Service } from './rig/service.ts';

const browser = testBrowser();

/** Opens the page of a service whose cluster has a pod that counts down. */
async function countingDown(t: TestContext) {
  const dir = mkdtempSync(join(tmpdir(), 'taintward-failure-'));
  const cluster = await startSimulatedCluster({ clock: systemClock, dir });
  const cut = once(() => cluster.close());
  t.after(async () => {
    await cut();
    rmSync(dir, { recursive: true });
  });
  const { context, kubeconfig } = cluster;
  const service = await Service.start('--context', context, '--kubeconfig', kubeconfig, '--enforce');
  t.after(() => service.stop());
  const visitor = await Visitor.enter(await browser(), service.link);
  t.after(() => visitor.leave());
  const { page } = visitor;
  await page.locator('.lamp[data-tone="well"] + span', { hasText: /^connected$/ }).waitFor();
  cluster.taint('node-1', 'maintenance=now:NoExecute');
  const pod = page.locator('.soonest a', { hasText: 'checkout' }).first();
  await pod.waitFor();
  return { cut, service, visitor, page, story: (await pod.getAttribute('href')) ?? '' };
}

test('a page of a frozen service looks alive nowhere, is live again with it, and ends with its restart', async (t) => {
  const { service, visitor, page, story } = await countingDown(t);
  service.signal('SIGSTOP');
  await page.getByText('Connection lost.').waitFor();
  for (const view of ['#/pending', '#/nodes', '#/rules', '#/history', story, '#/']) {
    await visitor.go(view);
    await page.getByRole('heading', { level: 1 }).and(page.locator(':focus')).waitFor();
    assert.equal(await page.locator('main.stale').count(), 1, view);
    const gray = await page.evaluate("getComputedStyle(document.querySelector('.stale > .page')).filter");
    assert.equal(gray, 'grayscale(1)', view);
    assert.equal(await page.locator('.lamp[data-tone="well"]').count(), 0, view);
    assert.equal(await page.getByText(/^(live|connected)$/).count(), 0, view);
  }
  await visitor.go('#/pending');
  const left = page.locator('.left').first();
  const before = await left.textContent();
  await sleep(2_500);
  assert.equal(await left.textContent(), before, 'a countdown runs');

  await page.getByRole('button', { name: 'Stop all' }).click();
  await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
  await page.getByRole('dialog').getByRole('button', { name: 'Copy' }).click();
  await page.getByText('Copied').waitFor();
  assert.equal(await page.evaluate('navigator.clipboard.readText()'), 'taintward stop --all');
  await page.keyboard.press('Escape');

  service.signal('SIGCONT');
  await page.getByText('live', { exact: true }).waitFor();
  await page.locator('main.stale').waitFor({ state: 'detached' });

  const { port } = new URL(service.link);
  await service.stop();
  const restarted = await Service.start('--console-port', port);
  t.after(() => restarted.stop());
  await page
    .locator('.banner', { hasText: 'Session ended.' })
    .getByText(/restart .* taintward console/)
    .waitFor();
  assert.equal(await page.locator('main.stale').count(), 1);
});

test('a cluster without its API server is shown as well nowhere', async (t) => {
  const { cut, visitor, page, story } = await countingDown(t);
  await cut();
  await page
    .locator('.needs')
    .getByText(/API server/)
    .waitFor();
  await page.locator('[data-column="contact"]', { hasText: 'disconnected' }).waitFor();
  assert.equal(await page.locator('main [data-tone="well"]').count(), 0);
  await visitor.go('#/rules');
  await page.getByText(/No current connection/).waitFor();
  await visitor.go(story.replace(/\/[^/]+$/, '/another'));
  await page.getByText(/^node unknown/).waitFor();
});
