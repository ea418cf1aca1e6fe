import type { Locator, Page } from '../browser/packages.ts';

/** Presses a button that opens a dialog, enters a reason, and confirms. */
export async function confirm(page: Page, button: Locator, reason: string): Promise<void> {
  await button.click();
  const dialog = page.getByRole('dialog');
  await dialog.getByLabel('Reason').fill(reason);
  await dialog.locator('[type="submit"]:enabled').click();
  await dialog.waitFor({ state: 'hidden' });
}
