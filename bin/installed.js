// In plain JavaScript, for whatever Node is at hand: npm start runs on the Node that npm ci brings along.
import module, { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';

try {
  createRequire(import.meta.url).resolve('node/bin/node');
} catch {
  process.stderr.write(
    'taintward: the dependencies are not installed: run npm ci in this directory first.\n',
  );
  process.exit(1);
}

// What TypeScript becomes is kept from one start to the next, so that its compiler, 26 MB, need not be loaded again. Where
// nothing can be written there, all is as it is without.
module.enableCompileCache?.(fileURLToPath(new URL('../node_modules/.cache/taintward', import.meta.url)));
