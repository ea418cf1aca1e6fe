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

/** Expected results arrive within seconds, even on a busy machine. */
export const WITHIN_MS = 30_000;

/** Flags for environments without a sandbox that weaken the browser's protections, or end it with its first page. */
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

/** The fonts that come with the browser, which the browser unpacks there, before those of the machine. */
const FONTS = `<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig>
  <dir>${join(tmpdir(), 'fonts')}</dir>
  <dir>/usr/share/fonts</dir>
  <cachedir>${join(tmpdir(), 'fonts-cache')}</cachedir>
  <alias><family>system-ui</family><prefer><family>Open Sans</family></prefer></alias>
</fontconfig>
`;

/** Some starts of the browser crash (SIGSEGV) before a page is opened. */
const LAUNCHES = 3;

/** Launches a Chromium that comes with npm, and renders the same text on any machine. */
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

/** Returns a browser for the tests of a file, with these flags beside the usual ones. */
export function testBrowser(...flags: readonly string[]): () => Promise<Browser> {
  let launched: Promise<Browser> | undefined;
  // The tests report a failed launch; a running browser must be closed.
  after(async () => (await launched?.catch(() => undefined))?.close());
  return () => {
    launched ??= launch(flags);
    return launched;
  };
}

/** A user who has opened a console by its link; new pages in the same session need no link. */
export class Visitor {
  readonly page: Page;
  readonly #context: BrowserContext;
  /** The violated policies and thrown errors of the pages. */
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

  /** Opens a new tab at the same address. */
  async another(): Promise<Page> {
    const page = await this.#context.newPage();
    this.#listen(page);
    await page.goto(this.page.url());
    return page;
  }

  /** Opens a view by its address, as with a bookmark. */
  async go(hash: string): Promise<void> {
    await this.page.evaluate(`location.hash = ${JSON.stringify(hash)}`);
  }

  /** Presses Tab until the focus is on the element with this text or label. */
  async tabTo(text: string | RegExp): Promise<void> {
    for (let presses = 0; presses < 150; presses++) {
      const focused = await this.focusedText();
      if (typeof text === 'string' ? focused === text : text.test(focused)) return;
      await this.page.keyboard.press('Tab');
    }
    assert.fail(`Tab does not lead to ${text}`);
  }

  /** Returns the text or label of the focused element. Empty: nothing has the focus. */
  async focusedText(): Promise<string> {
    const { focused, text } = (await this.page.evaluate(`(({ tagName, labels, ariaLabel, innerText }) =>
      ({ focused: tagName !== 'BODY', text: labels?.[0]?.innerText ?? ariaLabel ?? innerText }))(document.activeElement)`)) as {
      readonly focused: boolean;
      readonly text: string;
    };
    return focused ? text.replaceAll(/\s+/g, ' ').trim() : '';
  }

  /** Ends the session. Fails when a page complained. */
  async leave(): Promise<void> {
    await this.#context.close();
    assert.deepEqual(this.complaints, []);
  }
}

/** Fails when axe finds a violation of WCAG 2.2 AA, or of best practices. */
export async function assertAccessible(page: Page, where: string): Promise<void> {
  const { violations } = await new AxeBuilder({ page }).analyze();
  const found = violations.map(
    ({ id, nodes }) =>
      `${id}: ${nodes.map(({ target, failureSummary }) => `${target} ${failureSummary}`).join('; ')}`,
  );
  assert.deepEqual(found, [], where);
}

/** Widths of a small phone to a large screen. 640: 1,280 pixels at a zoom of 200 %. */
const WIDTHS = [320, 390, 640, 768, 1024, 1440, 2560];

/** Names of what is beyond the window's edge, and not in a part that scrolls by itself. */
const BEYOND = `[...document.querySelectorAll('body *')]
  .filter((element) => {
    const { right, left, width } = element.getBoundingClientRect();
    if (width <= 1 || (right <= innerWidth + 1 && left >= -1)) return false;
    for (let around = element.parentElement; around; around = around.parentElement)
      if (getComputedStyle(around).overflowX !== 'visible' && around.getBoundingClientRect().right <= innerWidth + 1)
        return false;
    return true;
  })
  .map(({ tagName, className, textContent }) => [tagName, className, textContent.trim().slice(0, 40)].join(' '))`;

/** Fails when something on the page overflows at any width. */
export async function assertFits(page: Page, where: string): Promise<void> {
  for (const width of WIDTHS) {
    await page.setViewportSize({ width, height: 800 });
    // The layout of tables follows their width a frame later.
    await page.evaluate('new Promise((shown) => requestAnimationFrame(() => setTimeout(shown, 50)))');
    const overflows = `[document.documentElement, ...document.querySelectorAll('[role="table"]')]
      .map(({ scrollWidth, clientWidth }) => scrollWidth - clientWidth)`;
    const [beyond, ...wider] = [
      await page.evaluate(BEYOND),
      ...((await page.evaluate(overflows)) as number[]),
    ];
    assert.deepEqual([beyond, Math.max(...wider) <= 0], [[], true], `${where} at ${width}`);
  }
}
