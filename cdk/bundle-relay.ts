import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { billOfMaterials } from './bill-of-materials.ts';
import { BILL_FILE, bundleRelay } from './bundle.ts';

/* What the Dockerfile calls: bundles the relay into the directory that is given, with its bill of materials. */
const [, , outDir] = process.argv;
if (outDir === undefined) {
  process.stderr.write('usage: node cdk/bundle-relay.ts DIRECTORY\n');
  process.exit(1);
}
const metafile = bundleRelay(outDir);
writeFileSync(join(outDir, BILL_FILE), JSON.stringify(billOfMaterials(metafile), undefined, 2));
