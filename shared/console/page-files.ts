import { createHash } from 'node:crypto';
import { copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { stripTypeScriptTypes } from 'node:module';
import { basename, dirname, extname, join, relative, sep } from 'node:path';
import { fileURLToPath } from 'node:url';

/** The packages that the page imports; each stands in node_modules as the browser takes it. */
const PACKAGES = [
  'preact',
  'preact/hooks',
  '@preact/signals',
  '@preact/signals-core',
  'htm',
  'htm/preact',
  '@tanstack/virtual-core',
];

/** What the page shares with what serves it: a module that imports nothing. */
const SHARED = '#shared/explain/gate-text.ts';

/** Where they stand in the repository. */
export const PAGE_PACKAGES: readonly string[] = PACKAGES.map((name) => `node_modules/${name}/`);

/** The page of this release: beside a bundle, or else in the repository. */
const OUR_PAGE = [new URL('page', import.meta.url), new URL('../../functions/console/page', import.meta.url)]
  .map((url) => fileURLToPath(url))
  .find((directory) => existsSync(directory)) as string;

/** In a page that stands by itself: where each package's module is in it, by the name that it is imported by. */
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

/** What a browser is served of the page: there is no build, only types are taken off. */
export interface PageFiles {
  /** The page itself. */
  readonly document: PageFile;
  /** Of the inline import map, for the content security policy. */
  readonly inlineHash: string;
  /** What the URLs of assets have in them: changes with any of them. */
  readonly version: string;
  /** An asset by its path after the version; `undefined`: there is none. */
  asset(path: string): PageFile | undefined;
}

/**
 * Reads the page in `directory`: its `index.html` names assets as `assets/…`, which are the files beside it, and imports
 * packages by their names. Nothing but what is read here is ever served, whatever a path says.
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
  const served = new Map<string, PageFile>();
  return {
    document: {
      type: 'text/html; charset=utf-8',
      body: Buffer.from(
        html
          .replaceAll(/(src|href)="assets\//g, `$1="assets/${version}/`)
          .replace('<script', () => `<script type="importmap">${map}</script>\n    <script`),
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

/**
 * Puts the page into `outDir` with the packages that it imports: it stands by itself there, without `node_modules`, and
 * `readPageFiles` serves the same of it.
 */
export function writePage(outDir: string): void {
  const document = ['index.html', join(OUR_PAGE, 'index.html')] as const;
  for (const [path, file] of [document, ...pageSources(OUR_PAGE), ...otherSources()]) {
    mkdirSync(dirname(join(outDir, path)), { recursive: true });
    copyFileSync(file, join(outDir, path));
  }
  writeFileSync(join(outDir, IMPORTS_FILE), JSON.stringify(ownImports(), undefined, 2));
}

/** Node warns of what is experimental; what it does here is what it does to each file of this project that it runs. */
function withoutTypes(code: string): string {
  const { emitWarning } = process;
  process.emitWarning = () => undefined;
  try {
    return stripTypeScriptTypes(code);
  } finally {
    process.emitWarning = emitWarning;
  }
}

/** From the path that a file is served under to where it is. */
type Sources = readonly (readonly [path: string, file: string])[];

const pageSources = (directory: string): Sources =>
  filesIn(directory, true).map((file) => [relative(directory, file).split(sep).join('/'), file]);

/** What is shared, and packages with what they import of their own, which lies beside them. */
const otherSources = (): Sources => [
  [`shared/${basename(SHARED)}`, entryOf(SHARED)],
  ...PACKAGES.flatMap((name) => {
    const beside = dirname(entryOf(name));
    return filesIn(beside, false).map(
      (file) => [`packages/${name}/${relative(beside, file)}`, file] as const,
    );
  }),
];

const entryOf = (name: string): string => fileURLToPath(import.meta.resolve(name));

/** From the name that a package is imported by to the path that its module is served under. */
type Imports = Readonly<Record<string, string>>;

const ownImports = (): Imports =>
  Object.fromEntries([
    [SHARED, `shared/${basename(SHARED)}`],
    ...PACKAGES.map((name) => [name, `packages/${name}/${basename(entryOf(name))}`]),
  ]);

const filesIn = (directory: string, recursive: boolean): readonly string[] =>
  readdirSync(directory, { recursive, withFileTypes: true })
    .filter((entry) => entry.isFile() && extname(entry.name) in TYPES && !entry.name.endsWith('.d.ts'))
    .map((entry) => join(entry.parentPath, entry.name));
