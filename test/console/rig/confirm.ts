import type { Locator, Page } from '../browser/packages.ts';

/** Presses a button that asks first, says why, and confirms. */
export async function confirm(page: Page, button: Locator, why: string): Promise<void> {
  await button.click();
  const dialog = page.getByRole('dialog');
  await dialog.getByLabel('Why').fill(why);
  await dialog.locator('[type="submit"]:enabled').click();
  await dialog.waitFor({ state: 'hidden' });
}
