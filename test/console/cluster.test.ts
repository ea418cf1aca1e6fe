import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { after, before, type TestContext, test } from 'node:test';
import { PROJECT_DIR } from '#deploy/build/bundle.ts';
import { CONTEXT, Stage } from '#test/cluster/rig/stage.ts';
import { loadContexts } from '#test/world/load-contexts.ts';
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

/** Starts `taintward console` with an administrator's context, and returns its link. */
async function ownConsole(t: TestContext): Promise<string> {
  const { KUBECONFIG: kubeconfig = '' } = process.env;
  const [{ name } = assert.fail('no current context')] = loadContexts({ kubeconfig, contexts: [] });
  const args = ['console', '--no-open', '--context', name, '--kubeconfig', kubeconfig];
  const main = join(PROJECT_DIR, 'functions/cli/main.ts');
  const child = spawn(process.execPath, [main, '--state-dir', service.state, ...args], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  t.after(() => child.kill());
  for await (const line of createInterface({ input: child.stdout }))
    if (line.startsWith('http:')) return line;
  return assert.fail('it printed no link');
}

test('a template gets tolerations, and so does a running pod, whose countdown moves', { skip }, async (t) => {
  const { cluster } = stage;
  const { namespace, api } = cluster;
  const node = await cluster.addNode('changed');
  const labels = { app: 'web' };
  const containers = [{ name: 'main', image: 'registry.k8s.io/pause:3.10' }];
  await api.create(`/apis/apps/v1/namespaces/${namespace}/deployments`, {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name: 'web' },
    spec: { selector: { matchLabels: labels }, template: { metadata: { labels }, spec: { containers } } },
  });
  const tolerations = [
    { key: 'maintenance', operator: 'Exists', effect: 'NoExecute', tolerationSeconds: 600 },
  ];
  await cluster.addPod(node, 'web-1', { tolerations });
  const owner = { apiVersion: 'apps/v1', kind: 'ReplicaSet', name: 'web-5d4f8c7b9d', uid: 'web' };
  await api.patch(cluster.podPath('web-1'), {
    metadata: { ownerReferences: [{ ...owner, controller: true }] },
  });
  await cluster.taint(node, { key: 'maintenance' });

  const operator = await Visitor.enter(await browser(), await ownConsole(t));
  const { page } = operator;
  const pods = page.getByRole('table', { name: 'Pods' });
  const dialog = page.getByRole('dialog');
  const fill = async () => {
    await pods.getByText(/^evicted in (10|9)m/).waitFor();
    await page.getByRole('button', { name: 'Add toleration' }).click();
    await page.getByLabel('Key').first().fill('maintenance');
    await page.getByLabel('Seconds').first().fill('36000');
    await page.getByRole('button', { name: 'Change tolerations' }).click();
  };
  const change = async (sentence: RegExp) => {
    await dialog.getByText(sentence).waitFor();
    await dialog.getByLabel('Reason').fill('a test');
    await dialog.getByRole('button', { name: 'Change' }).click();
    await dialog.waitFor({ state: 'hidden' });
  };
  await operator.go(`#/tolerations/${CONTEXT}/${namespace}/Deployment/web`);
  await fill();
  await change(/^A rollout follows/);
  await page.getByText('Changed deployment web.').waitFor();
  await page.getByLabel('Applies to').selectOption('pods');
  await fill();
  await change(/^Pods: 1, .* evicted in (10h|9h)/);
  await pods
    .getByText(/^evicted in (10h|9h)/)
    .first()
    .waitFor();
  await operator.go('#/pending');
  const row = page.locator('[role="table"] [data-key]', { hasText: `${namespace}/web-1` });
  await row.getByText(/^9h/).waitFor();
  await operator.go(`#/rules/${CONTEXT}`);
  await page.getByText('changed tolerations of').first().waitFor();
  await operator.leave();
});
