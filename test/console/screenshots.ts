import { mkdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { PROJECT_DIR } from '#deploy/build/bundle.ts';
import type { Page } from './browser/packages.ts';
import { launch, THEMES, type Theme, Visitor } from './rig/browser.ts';
import { openScene } from './rig/scene.ts';
import { Service } from './rig/service.ts';

// Creates the pictures of docs/how-to/use-console.md: `npm run docs:screenshots`.

const IMAGES = join(PROJECT_DIR, 'docs/images');
/** The size up to which a page of documentation loads without a noticeable delay. */
const MAX_BYTES = 200_000;
/** Enough pods to give the timeline a shape. */
const PODS = 180;
/** A policy document in the editor. */
const POLICY = 'mode: enforce\nreleaseRate: 20\nexclude:\n- namespaces: [kube-*]\n';
const VIEWPORT = { width: 1180, height: 680 };
/** The overview is taller. */
const TALLER = { width: 1180, height: 850 };

async function picture(page: Page, view: string, theme: Theme): Promise<void> {
  const path = join(IMAGES, `console-${view}-${theme}.png`);
  await page.screenshot({ path, caret: 'hide' });
  const { size } = statSync(path);
  if (size > MAX_BYTES) throw new Error(`${path} has ${size} bytes: more than ${MAX_BYTES}`);
  process.stdout.write(`${path}: ${Math.round(size / 1_000)} kB\n`);
}

/** Takes pictures of three clusters with many concurrent events. */
async function ofTheScene(visitor: Visitor, theme: Theme): Promise<void> {
  const { page } = visitor;
  await page.setViewportSize(TALLER);
  await page.locator('.soonest li').nth(4).waitFor();
  await page.locator('.minute > span').first().waitFor();
  await picture(page, 'overview', theme);
  await page.setViewportSize(VIEWPORT);
  await visitor.go('#/pending');
  await page.locator('[role="table"] [data-key]').nth(10).waitFor();
  await picture(page, 'pending', theme);
}

/** Takes pictures of the simulated cluster, with a node that was tainted by click. */
async function ofTheDemo(visitor: Visitor, theme: Theme): Promise<void> {
  const { page } = visitor;
  await page.getByRole('button', { name: 'Taint node-1' }).click();
  const pod = page.locator('.soonest li', { hasText: 'checkout' }).getByRole('link').first();
  await pod.click();
  await page.getByRole('table', { name: 'Taints of the node' }).locator('[data-key]').first().waitFor();
  await page.getByText(/^Tainted node/).waitFor({ state: 'detached' });
  await picture(page, 'story', theme);
  await page.getByRole('link', { name: 'Tolerations', exact: true }).click();
  await page.getByRole('heading', { name: 'Pods' }).waitFor();
  await page.setViewportSize(TALLER);
  await picture(page, 'tolerations', theme);
  await page.setViewportSize(VIEWPORT);
  await visitor.go('#/rules/simulated');
  await page.getByRole('button', { name: 'Edit policy' }).click();
  await page.getByRole('textbox', { name: 'Policy document' }).fill(POLICY);
  await page.getByText('releaseRate: 50 → 20').waitFor();
  await picture(page, 'policy', theme);
  await visitor.go('#/history');
  await page.locator('[role="table"] [data-key]').first().waitFor();
  await picture(page, 'history', theme);
  await visitor.go('#/what-if?taint=maintenance:NoExecute&nodes=topology.kubernetes.io/zone=zone-a');
  await page.getByRole('button', { name: 'Preview' }).click();
  await page.getByRole('table', { name: 'Workloads' }).locator('[data-key]').first().waitFor();
  await picture(page, 'what-if', theme);
  await visitor.go('#/');
  await page.getByRole('button', { name: 'Untaint node-1' }).click();
}

mkdirSync(IMAGES, { recursive: true });
const ends: (() => unknown)[] = [];
const browser = await launch();
try {
  for (const theme of THEMES) {
    const scene = await openScene({ after: (end) => ends.push(end as () => unknown) }, PODS);
    ends.unshift(() => scene.close());
    const service = await Service.start();
    ends.unshift(() => service.stop());
    for (const [link, visit] of [
      [scene.link(), ofTheScene],
      [service.link, ofTheDemo],
    ] as const) {
      const visitor = await Visitor.enter(browser, link, {
        colorScheme: theme,
        viewport: VIEWPORT,
        deviceScaleFactor: 1.25,
      });
      await visit(visitor, theme);
      await visitor.leave();
    }
  }
} finally {
  await browser.close();
  for (const end of ends) await end();
}
