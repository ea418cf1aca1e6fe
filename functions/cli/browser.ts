import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

/** Opens a URL; what it left behind goes with `close`. `undefined`: there is nothing to open it with. */
export type Browser = (url: string) => { close(): void } | undefined;

const OPENERS: Readonly<Partial<Record<NodeJS.Platform, readonly [string, ...string[]]>>> = {
  darwin: ['open'],
  linux: ['xdg-open'],
  win32: ['explorer.exe'],
};

/**
 * By what the system opens pages with. The URL is as secret as what it shows, and command lines can be read by everybody
 * on this machine: so it is told by a file that nobody else can read.
 */
export const startBrowser: Browser = (url) => {
  const [command, ...args] = OPENERS[process.platform] ?? [];
  const { DISPLAY, WAYLAND_DISPLAY } = process.env;
  const hasNone = process.platform === 'linux' && !DISPLAY && !WAYLAND_DISPLAY;
  if (command === undefined || hasNone || !process.stdout.isTTY) return undefined;
  const directory = mkdtempSync(join(tmpdir(), 'taintward-'));
  const file = join(directory, 'console.html');
  const page = `<!doctype html><meta charset="utf-8"><meta http-equiv="refresh" content="0; url=${url}">\n`;
  writeFileSync(file, page, { mode: 0o600 });
  const child = spawn(command, [...args, pathToFileURL(file).href], { detached: true, stdio: 'ignore' });
  // Whoever has no browser here has the link in the terminal.
  child.on('error', () => undefined);
  child.unref();
  return { close: () => rmSync(directory, { recursive: true, force: true }) };
};
