import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after } from 'node:test';
import {
  AxeBuilder,
  type Browser,
  type BrowserContext,
  type BrowserContextOptions,
  chromium,
  type Page,
  sparticuz,
} from '../browser/packages.ts';

/** What is waited for comes within seconds, also on a busy machine. */
export const WITHIN_MS = 30_000;

/** Flags for places without a sandbox that weaken what a browser guards, or end it with its first page. */
const UNWANTED = [
  '--single-process',
  '--no-zygote',
  '--disable-web-security',
  '--disable-site-isolation-trials',
  '--allow-running-insecure-content',
];

export const PHONE = { width: 360, height: 740 };
export const DESKTOP = { width: 1280, height: 860 };
export const THEMES = ['light', 'dark'] as const;
export type Theme = (typeof THEMES)[number];

/** The fonts that come with the browser, which it puts there, before those of the machine. */
const FONTS = `<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig>
  <dir>${join(tmpdir(), 'fonts')}</dir>
  <dir>/usr/share/fonts</dir>
  <cachedir>${join(tmpdir(), 'fonts-cache')}</cachedir>
  <alias><family>system-ui</family><prefer><family>Open Sans</family></prefer></alias>
</fontconfig>
`;

/** Some of its starts end with a fault of its own (SIGSEGV), before a page is asked for. */
const LAUNCHES = 3;

/** A Chromium that comes with npm, and shows the same text wherever it runs. */
export async function launch(flags: readonly string[] = [], launches = LAUNCHES): Promise<Browser> {
  const config = join(tmpdir(), 'taintward-console-fonts.conf');
  writeFileSync(config, FONTS);
  const launched = chromium.launch({
    executablePath: await sparticuz.executablePath(),
    env: { ...process.env, FONTCONFIG_FILE: config },
    args: [...sparticuz.args.filter((flag) => !UNWANTED.includes(flag)), ...flags],
    headless: true,
  });
  return launches > 1 ? launched.catch(() => launch(flags, launches - 1)) : launched;
}

/** A browser for the tests of a file, with these flags beside the usual ones. */
export function testBrowser(...flags: readonly string[]): () => Promise<Browser> {
  let launched: Promise<Browser> | undefined;
  // That it was never there is told by the tests; what else is to be ended must be.
  after(async () => (await launched?.catch(() => undefined))?.close());
  return () => {
    launched ??= launch(flags);
    return launched;
  };
}

/** Somebody who has opened a console by its link; new pages of theirs are let in, too. */
export class Visitor {
  readonly page: Page;
  readonly #context: BrowserContext;
  /** What the pages complained of: a policy that was violated, something that was thrown. */
  readonly complaints: string[] = [];

  private constructor(context: BrowserContext, page: Page) {
    this.#context = context;
    this.page = page;
    this.#listen(page);
  }

  #listen(page: Page): void {
    page.on('pageerror', (error) => this.complaints.push(String(error)));
    page.on('console', (message) => {
      if (message.type() === 'error' && !/Failed to load resource/.test(message.text()))
        this.complaints.push(message.text());
    });
  }

  static async enter(browser: Browser, link: string, options: BrowserContextOptions = {}): Promise<Visitor> {
    const context = await browser.newContext({ viewport: DESKTOP, locale: 'en-GB', ...options });
    context.setDefaultTimeout(WITHIN_MS);
    const visitor = new Visitor(context, await context.newPage());
    await visitor.page.goto(link);
    await visitor.page.getByRole('heading', { level: 1 }).waitFor();
    return visitor;
  }

  /** A new tab at the same address. */
  async another(): Promise<Page> {
    const page = await this.#context.newPage();
    this.#listen(page);
    await page.goto(this.page.url());
    return page;
  }

  /** Goes to a view by its address, as with a bookmark. */
  async go(hash: string): Promise<void> {
    await this.page.evaluate(`location.hash = ${JSON.stringify(hash)}`);
  }

  /** Ends it. Fails when a page complained. */
  async leave(): Promise<void> {
    await this.#context.close();
    assert.deepEqual(this.complaints, []);
  }
}

/** Fails when axe finds a violation of WCAG 2.2 AA, or of what is good practice. */
export async function assertAccessible(page: Page, where: string): Promise<void> {
  const { violations } = await new AxeBuilder({ page }).analyze();
  const found = violations.map(
    ({ id, nodes }) =>
      `${id}: ${nodes.map(({ target, failureSummary }) => `${target} ${failureSummary}`).join('; ')}`,
  );
  assert.deepEqual(found, [], where);
}
