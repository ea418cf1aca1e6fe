import { createHash } from 'node:crypto';
import { copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { stripTypeScriptTypes } from 'node:module';
import { basename, dirname, extname, join, relative, sep } from 'node:path';
import { fileURLToPath } from 'node:url';

/** Packages that the page imports. Their files in node_modules run in a browser without a build. */
const PACKAGES = [
  'preact',
  'preact/hooks',
  '@preact/signals',
  '@preact/signals-core',
  'htm',
  'htm/preact',
  '@tanstack/virtual-core',
];

/** Modules that the page shares with the server. They import nothing but each other and types. */
const SHARED = [
  '#shared/eviction/guard.ts',
  '#shared/eviction/selectors.ts',
  '#shared/explain/gate-text.ts',
  '#shared/explain/job.ts',
  '#shared/operations/ask/words.ts',
  '#shared/operations/acts/act.ts',
  '#shared/operations/look/history-text.ts',
  '#shared/taints/int64.ts',
  '#shared/taints/taint.ts',
  '#shared/taints/tolerations.ts',
  '#shared/taints/validation.ts',
  '#shared/text/capitalized.ts',
  '#shared/time/duration.ts',
  '#shared/time/time-text.ts',
];

/** Directories of the packages in the repository. */
export const PAGE_PACKAGES: readonly string[] = PACKAGES.map((name) => `node_modules/${name}/`);

/** The page of this release: next to a bundle, or in the repository. */
const OUR_PAGE = [new URL('page', import.meta.url), new URL('../../functions/console/page', import.meta.url)]
  .map((url) => fileURLToPath(url))
  .find((directory) => existsSync(directory)) as string;

/** In a standalone page, the file that maps each package name to the path of its module. */
const IMPORTS_FILE = 'imports.json';

const TYPES: Readonly<Record<string, string>> = {
  '.ts': 'text/javascript; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.mjs': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.png': 'image/png',
};

export interface PageFile {
  readonly type: string;
  readonly body: Buffer;
}

/** Files of the page as a browser receives them. There is no build: only types are removed. */
export interface PageFiles {
  readonly document: PageFile;
  /** Hash of the inline import map, for the content security policy. */
  readonly inlineHash: string;
  /** Part of the assets' URLs. Changes with every change of an asset. */
  readonly version: string;
  /** Returns an asset by its path after the version. `undefined`: there is none. */
  asset(path: string): PageFile | undefined;
}

/**
 * `index.html` refers to adjacent files as `assets/…`, and imports packages by name. Only files that are read here are
 * ever served, whatever path is requested.
 */
export function readPageFiles(directory = OUR_PAGE): PageFiles {
  const own = join(directory, IMPORTS_FILE);
  const imports: Imports = existsSync(own) ? JSON.parse(readFileSync(own, 'utf8')) : ownImports();
  const sources = new Map([...pageSources(directory), ...(existsSync(own) ? [] : otherSources())]);
  const html = readFileSync(join(directory, 'index.html'), 'utf8');
  const hash = createHash('sha256').update(html);
  for (const [path, file] of [...sources].sort(([a], [b]) => (a < b ? -1 : 1))) {
    hash.update(`\0${path}\0`).update(readFileSync(file));
  }
  const version = hash.digest('base64url').slice(0, 16);
  const placed = Object.entries(imports).map(([name, path]) => [name, `./assets/${version}/${path}`]);
  const map = JSON.stringify({ imports: Object.fromEntries(placed) });
  // Without these, a browser finds the modules of each depth only after those that import them.
  const ours = [...sources.keys()].filter((path) => path.endsWith('.ts'));
  const modules = [...new Set([...ours, ...Object.values(imports)])].sort();
  const preload = (path: string) => `<link rel="modulepreload" href="assets/${version}/${path}" />`;
  const links = modules.map(preload).join('');
  const served = new Map<string, PageFile>();
  return {
    document: {
      type: 'text/html; charset=utf-8',
      body: Buffer.from(
        html
          .replaceAll(/(src|href)="assets\//g, `$1="assets/${version}/`)
          .replace('<script', () => `<script type="importmap">${map}</script>${links}\n    <script`),
      ),
    },
    inlineHash: `sha256-${createHash('sha256').update(map).digest('base64')}`,
    version,
    asset(path) {
      const known = served.get(path);
      if (known) return known;
      const file = sources.get(path);
      if (file === undefined) return undefined;
      const read = readFileSync(file);
      const asset = {
        type: TYPES[extname(file)] ?? 'application/octet-stream',
        body: file.endsWith('.ts') ? Buffer.from(withoutTypes(read.toString())) : read,
      };
      served.set(path, asset);
      return asset;
    },
  };
}

/** Writes the page with its packages: without `node_modules`, `readPageFiles` serves the same files from it. */
export function writePage(outDir: string): void {
  const document = ['index.html', join(OUR_PAGE, 'index.html')] as const;
  for (const [path, file] of [document, ...pageSources(OUR_PAGE), ...otherSources()]) {
    mkdirSync(dirname(join(outDir, path)), { recursive: true });
    copyFileSync(file, join(outDir, path));
  }
  writeFileSync(join(outDir, IMPORTS_FILE), JSON.stringify(ownImports(), undefined, 2));
}

/** Suppresses Node's warning about an experimental feature: Node also removes types when it runs this project. */
function withoutTypes(code: string): string {
  const { emitWarning } = process;
  process.emitWarning = () => undefined;
  try {
    return stripTypeScriptTypes(code);
  } finally {
    process.emitWarning = emitWarning;
  }
}

type Sources = readonly (readonly [path: string, file: string])[];

const pageSources = (directory: string): Sources =>
  filesIn(directory, true).map((file) => [relative(directory, file).split(sep).join('/'), file]);

/** A package's own imports are files next to its entry. */
const otherSources = (): Sources => [
  ...SHARED.map((name) => [`shared/${basename(name)}`, entryOf(name)] as const),
  ...PACKAGES.flatMap((name) => {
    const beside = dirname(entryOf(name));
    return filesIn(beside, false).map(
      (file) => [`packages/${name}/${relative(beside, file)}`, file] as const,
    );
  }),
];

const entryOf = (name: string): string => fileURLToPath(import.meta.resolve(name));

/** Maps the import name of a package to the path under which its module is served. */
type Imports = Readonly<Record<string, string>>;

const ownImports = (): Imports =>
  Object.fromEntries([
    ...SHARED.map((name) => [name, `shared/${basename(name)}`]),
    ...PACKAGES.map((name) => [name, `packages/${name}/${basename(entryOf(name))}`]),
  ]);

const filesIn = (directory: string, recursive: boolean): readonly string[] =>
  readdirSync(directory, { recursive, withFileTypes: true })
    .filter((entry) => entry.isFile() && extname(entry.name) in TYPES && !entry.name.endsWith('.d.ts'))
    .map((entry) => join(entry.parentPath, entry.name));
