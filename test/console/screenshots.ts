import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { PROJECT_DIR } from '#deploy/build/bundle.ts';
import type { Page } from './browser/packages.ts';
import { launch, THEMES, type Theme, Visitor } from './rig/browser.ts';
import { openScene } from './rig/scene.ts';
import { Service } from './rig/service.ts';

// Creates the pictures of docs/how-to/use-console.md: `npm run docs:screenshots`.

const IMAGES = join(PROJECT_DIR, 'docs/images');
/** The size up to which a page of documentation loads without a noticeable delay. */
const MAX_BYTES = 100_000;
/** Percent: text has no visible artifacts. */
const QUALITY = 82;
/** Enough pods to give the timeline a shape. */
const PODS = 180;
/** A policy document in the editor. */
const POLICY = 'mode: enforce\nreleaseRate: 20\nexclude:\n- namespaces: [kube-*]\n';
/** The pages of the docs show the first, and link the others. */
const SIZES = [
  { width: 1440, height: 900 },
  { width: 1024, height: 900 },
  { width: 390, height: 844 },
] as const;

async function picture(page: Page, view: string, theme: Theme): Promise<void> {
  const devtools = await page.context().newCDPSession(page);
  await page.evaluate('document.activeElement.blur()');
  await page.mouse.move(0, 0);
  for (const viewport of SIZES) {
    await page.setViewportSize(viewport);
    await page.evaluate('new Promise((shown) => requestAnimationFrame(() => setTimeout(shown, 100)))');
    const options = { format: 'webp', quality: QUALITY } as const;
    const { data } = await devtools.send('Page.captureScreenshot', options);
    const width = viewport === SIZES[0] ? '' : `-${viewport.width}`;
    const path = join(IMAGES, `console-${view}${width}-${theme}.webp`);
    const bytes = Buffer.from(data, 'base64');
    writeFileSync(path, bytes);
    if (bytes.length > MAX_BYTES)
      throw new Error(`${path} has ${bytes.length} bytes: more than ${MAX_BYTES}`);
    process.stdout.write(`${path}: ${Math.round(bytes.length / 1_000)} kB\n`);
  }
  await page.setViewportSize(SIZES[0]);
}

/** Takes pictures of three clusters with many concurrent events. */
async function ofTheScene(visitor: Visitor, theme: Theme): Promise<void> {
  const { page } = visitor;
  const row = page.locator('[role="table"] [data-key]').first();
  await page.locator('.soonest li').nth(4).waitFor();
  await page.locator('.minute > span').first().waitFor();
  await picture(page, 'overview', theme);
  for (const view of ['rules/prod-eu', 'nodes', 'pending']) {
    await visitor.go(`#/${view}`);
    await row.waitFor();
    await picture(page, view.split('/')[0] ?? '', theme);
  }
}

/** Takes pictures of the simulated cluster, with a node that was tainted by click. */
async function ofTheDemo(visitor: Visitor, theme: Theme): Promise<void> {
  const { page } = visitor;
  const row = page.locator('[role="table"] [data-key]').first();
  await page.getByRole('button', { name: 'Taint node-1' }).click();
  await page.getByText(/^Tainted node/).waitFor({ state: 'detached' });
  await visitor.go('#/pending?by=workload');
  await row.waitFor();
  await picture(page, 'groups', theme);
  await visitor.go('#/');
  const pod = page.locator('.soonest li', { hasText: 'checkout' }).getByRole('link').first();
  await pod.click();
  await page.getByRole('table', { name: 'Taints of the node' }).locator('[data-key]').first().waitFor();
  await picture(page, 'story', theme);
  await page.getByRole('link', { name: 'Tolerations', exact: true }).click();
  await page.getByRole('heading', { name: 'Pods' }).waitFor();
  await picture(page, 'tolerations', theme);
  await visitor.go('#/node/simulated/node-1');
  await row.waitFor();
  await picture(page, 'node', theme);
  await visitor.go('#/rules/simulated');
  await page.getByRole('button', { name: 'Edit policy' }).click();
  await page.getByRole('textbox', { name: 'Policy document' }).fill(POLICY);
  await page.getByText('releaseRate: 50 → 20').waitFor();
  await picture(page, 'policy', theme);
  await visitor.go('#/history');
  await row.waitFor();
  await picture(page, 'history', theme);
  await visitor.go('#/what-if?taint=maintenance:NoExecute&nodes=topology.kubernetes.io/zone=zone-a');
  await page.getByRole('button', { name: 'Preview' }).click();
  await row.waitFor();
  await picture(page, 'what-if', theme);
  await visitor.go('#/');
  await page.getByRole('button', { name: 'Untaint node-1' }).click();
}

mkdirSync(IMAGES, { recursive: true });
const ends: (() => unknown)[] = [];
const browser = await launch();
try {
  for (const theme of THEMES) {
    const visit = async (link: string, take: typeof ofTheDemo) => {
      const options = { colorScheme: theme, viewport: SIZES[0], deviceScaleFactor: 1.25 };
      const visitor = await Visitor.enter(browser, link, options);
      await take(visitor, theme);
      await visitor.leave();
    };
    const service = await Service.start();
    ends.unshift(() => service.stop());
    await visit(service.link, ofTheDemo);
    // The leases of a scene are not renewed: after some seconds, its clusters are disconnected.
    const scene = await openScene({ after: (end) => ends.push(end as () => unknown) }, PODS);
    ends.unshift(() => scene.close());
    await visit(scene.link(), ofTheScene);
  }
} finally {
  await browser.close();
  for (const end of ends) await end();
}
