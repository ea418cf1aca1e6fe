import { after, before, test } from 'node:test';
import { CONTEXT, Stage } from '#test/cluster/rig/stage.ts';
import { testBrowser, Visitor } from './rig/browser.ts';
import { confirm } from './rig/confirm.ts';
import { Service } from './rig/service.ts';

const browser = testBrowser();
/** Seconds for which a pod tolerates the taint: enough time to hold the pod. */
const SECONDS = 20;

// The test uses the API server in KUBECONFIG; without it only the demo is tested.
const skip = process.env['KUBECONFIG'] ? false : 'KUBECONFIG is not set';
let stage: Stage;
let service: Service;
let visitor: Visitor;

before(async () => {
  if (skip) return;
  stage = await Stage.open();
  service = await Service.start('--context', CONTEXT, '--kubeconfig', stage.kubeconfig, '--enforce');
  visitor = await Visitor.enter(await browser(), service.link);
});
after(async () => {
  await visitor?.leave();
  await service?.stop();
  await stage?.close();
});

test('a pod on a real API server counts down, is held and released, and has a history', {
  skip,
}, async () => {
  const { page } = visitor;
  const { cluster } = stage;
  const node = await cluster.addNode('console');
  const tolerations = [
    { key: 'maintenance', operator: 'Exists', effect: 'NoExecute', tolerationSeconds: SECONDS },
  ];
  await cluster.addPod(node, 'held', { tolerations });
  await cluster.taint(node, { key: 'maintenance' });

  await page.getByRole('link', { name: /^Pending/ }).click();
  const row = page.locator('[role="table"] [data-key]', { hasText: `${cluster.namespace}/held` });
  await row.getByText('scheduled', { exact: true }).waitFor();
  await confirm(page, row.getByRole('button', { name: 'Hold' }), 'is being debugged');
  await row.getByText('on hold').waitFor();
  await row.getByRole('link', { name: 'held' }).click();
  await page
    .locator('.verdict')
    .getByText(/is held by hold/)
    .waitFor();
  await page.getByText(/^\[0\] /).waitFor();
  await confirm(page, page.getByRole('button', { name: /^Release hold/ }), 'is debugged');
  await page
    .locator('.verdict')
    .getByText(/was (evicted|deleted)/)
    .waitFor();
  await page.locator('.past').getByText('evicted', { exact: true }).waitFor();
});

test('a forecast on a real API server evicts nothing', { skip }, async () => {
  const { page } = visitor;
  const { cluster } = stage;
  const node = await cluster.addNode('asked');
  await cluster.addPod(node, 'bare');
  await page.getByRole('link', { name: 'What if' }).click();
  await page.getByRole('textbox', { name: 'Taint' }).fill('gone:NoExecute');
  await page.getByLabel(/^Nodes/).fill(node);
  await page.getByRole('button', { name: 'Preview' }).click();
  await page.locator('.needs li', { hasText: `${cluster.namespace}/bare` }).waitFor();
});
