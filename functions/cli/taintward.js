#!/usr/bin/env node
// In plain JavaScript, for whatever Node is at hand: hands over to the Node that this project brings along.
import { spawnSync } from 'node:child_process';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';

const main = fileURLToPath(new URL('./main.ts', import.meta.url));
/** Where npm start keeps it, too. */
const COMPILED = fileURLToPath(new URL('../../node_modules/.cache/taintward', import.meta.url));

function ownNode() {
  try {
    return createRequire(import.meta.url).resolve('node/bin/node');
  } catch {
    process.stderr.write(
      'taintward: the dependencies are not installed: run npm ci in its directory first.\n',
    );
    process.exit(1);
  }
}

// Control-C reaches both processes: the other one decides what it means.
process.on('SIGINT', () => {});
const { status, signal, error } = spawnSync(ownNode(), [main, ...process.argv.slice(2)], {
  stdio: 'inherit',
  // What TypeScript becomes is kept from one command to the next, which saves half of its time.
  env: { NODE_COMPILE_CACHE: COMPILED, ...process.env },
});
if (error) process.stderr.write(`taintward: ${error.message}\n`);
process.exit(status ?? (signal === 'SIGINT' ? 130 : 1));
