import { writeBill } from './bill-of-materials.ts';
import { bundleRelay } from './bundle.ts';

/* What the Dockerfile calls: bundles the relay into the directory that is given, with its bill of materials. */
const [, , outDir] = process.argv;
if (outDir === undefined) {
  process.stderr.write('usage: node cdk/bundle-relay.ts DIRECTORY\n');
  process.exit(1);
}
writeBill(bundleRelay(outDir), outDir);
