import { bundleRelay } from './bundle.ts';

/* What the Dockerfile calls: bundles the relay into the directory that is given. */
const [, , outDir] = process.argv;
if (outDir === undefined) {
  process.stderr.write('usage: node cdk/bundle-relay.ts DIRECTORY\n');
  process.exit(1);
}
bundleRelay(outDir);
