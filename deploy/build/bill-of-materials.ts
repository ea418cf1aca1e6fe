import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Metafile } from 'esbuild';
import { PROJECT_DIR } from './bundle.ts';

/** The fields of a CycloneDX document that are used; the others are kept unchanged. */
interface BillOfMaterials {
  readonly metadata: { readonly component: Component; readonly timestamp?: string };
  readonly serialNumber?: string;
  readonly components: readonly Component[];
  readonly dependencies: readonly { readonly ref: string; readonly dependsOn?: readonly string[] }[];
}

interface Component {
  /** `NAME@VERSION`, as in npm. */
  readonly 'bom-ref': string;
  readonly name: string;
  /** The hashes of the package's archive. */
  readonly hashes?: readonly { readonly alg: string; readonly content: string }[];
}

interface Lockfile {
  readonly packages: Readonly<Record<string, LockedPackage>>;
}

interface LockedPackage {
  readonly version?: string;
  readonly integrity?: string;
  /** True: only development needs the package. */
  readonly dev?: boolean;
}

const readLockfile = (): Lockfile => JSON.parse(readFileSync(join(PROJECT_DIR, 'package-lock.json'), 'utf8'));

/** Returns a package, given by its folder, as `NAME@VERSION`. */
const refOf = (folder: string, { version }: LockedPackage): string =>
  `${folder.slice(folder.lastIndexOf('node_modules/') + 'node_modules/'.length)}@${version}`;

/** One redistributed artifact: the inputs of a bundle, and the files beside it, as paths from the repository. */
export interface Made {
  readonly metafile: Pick<Metafile, 'outputs'>;
  readonly beside?: readonly string[];
}

/**
 * Returns the folders of the packages that the artifact contains parts of, from the repository. Throws if the lockfile lacks one
 * of them.
 */
export function packageFolders({ metafile, beside = [] }: Made): readonly string[] {
  const { packages } = readLockfile();
  const used = Object.values(metafile.outputs).flatMap(({ inputs }) =>
    Object.entries(inputs).flatMap(([path, { bytesInOutput }]) => (bytesInOutput > 0 ? [path] : [])),
  );
  const folders = [...used, ...beside].flatMap((path) => {
    const [, folder] = /^(node_modules\/(?:.*node_modules\/)?(?:@[^/]+\/)?[^/]+)\//.exec(path) ?? [];
    if (folder === undefined) return [];
    if (packages[folder] === undefined) {
      throw new Error(`package-lock.json knows no ${folder}: run npm ci.`);
    }
    return [folder];
  });
  return [...new Set(folders)].toSorted();
}

/**
 * Returns the packages that the artifact contains parts of, as `NAME@VERSION`, from the lockfile. Throws as `packageFolders`
 * does.
 */
export function packagesIn(made: Made): ReadonlySet<string> {
  const { packages } = readLockfile();
  return new Set(packageFolders(made).map((folder) => refOf(folder, packages[folder] ?? {})));
}

/** Returns the bill of materials of an artifact, as CycloneDX: the packages that it contains parts of. */
export const billOfMaterials = (made: Made): BillOfMaterials => billOf(packagesIn(made));

/**
 * Returns the bill of materials of the whole project without its development tools, as CycloneDX. The project also runs from its
 * sources.
 */
export function billOfProject(): BillOfMaterials {
  const { '': _project, ...packages } = readLockfile().packages;
  const kept = Object.entries(packages).filter(([, { dev }]) => !dev);
  return billOf(new Set(kept.map(([folder, each]) => refOf(folder, each))));
}

/** Writes the bill of materials of an artifact into `file`. */
export function writeBill(made: Made, file: string): void {
  writeFileSync(file, JSON.stringify(billOfMaterials(made), undefined, 2));
}

/** The output of npm for the whole lockfile, cached because npm takes a second. */
let printed: BillOfMaterials | undefined;

/**
 * Returns npm's bill of materials of the lockfile, reduced to these packages. npm omits the hash of a package that is bundled
 * within another one, and with `--omit=dev` also the packages that a tool needs too. The same packages have the same bill: npm's
 * timestamp, random number and folder name are removed.
 */
function billOf(refs: ReadonlySet<string>): BillOfMaterials {
  printed ??= JSON.parse(
    execFileSync('npm', ['sbom', '--sbom-format=cyclonedx', '--package-lock-only'], {
      cwd: PROJECT_DIR,
      encoding: 'utf8',
      stdio: 'pipe',
    }),
  ) as BillOfMaterials;
  const { serialNumber: _random, metadata, ...locked } = printed;
  const { timestamp: _moment, component, ...rest } = metadata;
  const ours = { ...component, name: component['bom-ref'].slice(0, component['bom-ref'].lastIndexOf('@')) };
  const hashes = new Map(
    Object.entries(readLockfile().packages).flatMap(([folder, each]) =>
      each.integrity === undefined ? [] : [[refOf(folder, each), hashOf(each.integrity)] as const],
    ),
  );
  const components = locked.components
    .filter((each) => refs.has(each['bom-ref']))
    .map((each) => ({ ...each, hashes: [hashes.get(each['bom-ref'])].filter((hash) => hash !== undefined) }));
  const kept = new Set([ours, ...components].map((each) => each['bom-ref']));
  const dependencies = locked.dependencies
    .filter(({ ref }) => kept.has(ref))
    .map(({ ref, dependsOn = [] }) => ({ ref, dependsOn: dependsOn.filter((other) => kept.has(other)) }));
  return { ...locked, metadata: { ...rest, component: ours }, components, dependencies };
}

/** Returns an integrity of the lockfile, `sha512-BASE64`, in the format of CycloneDX. */
function hashOf(integrity: string): { readonly alg: string; readonly content: string } {
  const [algorithm = '', digest = ''] = integrity.split('-');
  return {
    alg: algorithm.toUpperCase().replace('SHA', 'SHA-'),
    content: Buffer.from(digest, 'base64').toString('hex'),
  };
}
