// In plain JavaScript, for whatever Node is at hand: npm start runs on the Node that npm ci brings along.
import { createRequire } from 'node:module';

try {
  createRequire(import.meta.url).resolve('node/bin/node');
} catch {
  process.stderr.write(
    'taintward: the dependencies are not installed: run npm ci in this directory first.\n',
  );
  process.exit(1);
}
