import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

/** Opens a URL in a browser. `close` removes the temporary files. `undefined`: no browser can be started. */
export type Browser = (url: string) => { close(): void } | undefined;

const OPENERS: Readonly<Partial<Record<NodeJS.Platform, readonly [string, ...string[]]>>> = {
  darwin: ['open'],
  linux: ['xdg-open'],
  win32: ['explorer.exe'],
};

/** The URL is as secret as the console, and every user can read command lines: it is passed in a file of this user. */
export const startBrowser: Browser = (url) => {
  const [command, ...args] = OPENERS[process.platform] ?? [];
  const { DISPLAY, WAYLAND_DISPLAY } = process.env;
  const hasNone = process.platform === 'linux' && !DISPLAY && !WAYLAND_DISPLAY;
  if (command === undefined || hasNone || !process.stdout.isTTY) return undefined;
  const directory = mkdtempSync(join(tmpdir(), 'taintward-'));
  const file = join(directory, 'console.html');
  const page = `<!doctype html><meta charset="utf-8"><meta http-equiv="refresh" content="0; url=${url}">\n`;
  writeFileSync(file, page);
  const child = spawn(command, [...args, pathToFileURL(file).href], { detached: true, stdio: 'ignore' });
  // Without a browser, the user opens the link that the terminal shows.
  child.on('error', () => undefined);
  child.unref();
  return { close: () => rmSync(directory, { recursive: true, force: true }) };
};
