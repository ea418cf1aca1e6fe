import { billOfProject } from './bill-of-materials.ts';

/* What `npm run sbom` calls: prints the bill of materials of the project as CycloneDX. */
process.stdout.write(`${JSON.stringify(billOfProject(), undefined, 2)}\n`);
