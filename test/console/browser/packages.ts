/* The packages of this folder's own package.json, which `npm run test:console` installs. */

export { AxeBuilder } from '@axe-core/playwright';
export { default as sparticuz } from '@sparticuz/chromium';
export {
  type Browser,
  type BrowserContext,
  type BrowserContextOptions,
  chromium,
  type Locator,
  type Page,
} from 'playwright-core';
