import { billOfProject } from './bill-of-materials.ts';

/* The program of `npm run sbom`: prints the bill of materials of the project as CycloneDX. */
process.stdout.write(`${JSON.stringify(billOfProject(), undefined, 2)}\n`);
