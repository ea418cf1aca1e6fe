import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Metafile } from 'esbuild';
import { PROJECT_DIR } from './bundle.ts';

/** What of a CycloneDX document is looked at; the rest is handed on. */
interface BillOfMaterials {
  readonly metadata: { readonly component: Component };
  readonly components: readonly Component[];
  readonly dependencies: readonly { readonly ref: string; readonly dependsOn?: readonly string[] }[];
}

interface Component {
  /** `NAME@VERSION`, as npm has it. */
  readonly 'bom-ref': string;
}

interface Lockfile {
  readonly packages: Readonly<Record<string, { readonly version?: string }>>;
}

/**
 * The packages of which something is in a bundle, as `NAME@VERSION`, by the lockfile. Throws when the bundle has one that the lockfile
 * does not know.
 */
export function packagesIn({ outputs }: Pick<Metafile, 'outputs'>): ReadonlySet<string> {
  const { packages }: Lockfile = JSON.parse(readFileSync(join(PROJECT_DIR, 'package-lock.json'), 'utf8'));
  const used = Object.values(outputs).flatMap(({ inputs }) =>
    Object.entries(inputs).flatMap(([path, { bytesInOutput }]) => (bytesInOutput > 0 ? [path] : [])),
  );
  return new Set(
    used.flatMap((path) => {
      // Whatever comes before it, where that folder is a link.
      const [, folder] = /(node_modules\/(?:.*node_modules\/)?(?:@[^/]+\/)?[^/]+)\//.exec(path) ?? [];
      if (folder === undefined) return [];
      const version = packages[folder]?.version;
      if (version === undefined) throw new Error(`package-lock.json knows no ${folder}: run npm ci.`);
      return [`${folder.slice(folder.lastIndexOf('node_modules/') + 'node_modules/'.length)}@${version}`];
    }),
  );
}

/**
 * The bill of materials of a bundle, as CycloneDX: what npm says of the lockfile, less the packages of which nothing is in the
 * bundle.
 */
export function billOfMaterials(metafile: Pick<Metafile, 'outputs'>): BillOfMaterials {
  const args = ['sbom', '--sbom-format=cyclonedx', '--package-lock-only'];
  const locked: BillOfMaterials = JSON.parse(
    execFileSync('npm', args, { cwd: PROJECT_DIR, encoding: 'utf8', stdio: 'pipe' }),
  );
  const used = packagesIn(metafile);
  const components = locked.components.filter((component) => used.has(component['bom-ref']));
  const refs = new Set([locked.metadata.component, ...components].map((component) => component['bom-ref']));
  const dependencies = locked.dependencies
    .filter(({ ref }) => refs.has(ref))
    .map(({ ref, dependsOn = [] }) => ({ ref, dependsOn: dependsOn.filter((other) => refs.has(other)) }));
  return { ...locked, components, dependencies };
}
