import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { stripTypeScriptTypes } from 'node:module';
import { dirname, extname, join, relative, sep } from 'node:path';
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
export function readPageFiles(directory = fileURLToPath(new URL('page', import.meta.url))): PageFiles {
  const sources = new Map([...pageSources(directory), ...packageSources()]);
  const html = readFileSync(join(directory, 'index.html'), 'utf8');
  const hash = createHash('sha256').update(html);
  for (const [path, file] of [...sources].sort(([a], [b]) => (a < b ? -1 : 1))) {
    hash.update(`\0${path}\0`).update(readFileSync(file));
  }
  const version = hash.digest('base64url').slice(0, 16);
  const map = JSON.stringify({ imports: importsOf(version) });
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

/** With what they import of their own package, which lies beside them. */
const packageSources = (): Sources =>
  PACKAGES.flatMap((name) => {
    const beside = dirname(entryOf(name));
    return filesIn(beside, false).map(
      (file) => [`packages/${name}/${relative(beside, file)}`, file] as const,
    );
  });

const entryOf = (name: string): string => fileURLToPath(import.meta.resolve(name));

function importsOf(version: string): Readonly<Record<string, string>> {
  const packages = PACKAGES.map((name) => {
    const entry = entryOf(name);
    return [name, `./assets/${version}/packages/${name}/${relative(dirname(entry), entry)}`] as const;
  });
  return Object.fromEntries(packages);
}

const filesIn = (directory: string, recursive: boolean): readonly string[] =>
  readdirSync(directory, { recursive, withFileTypes: true })
    .filter((entry) => entry.isFile() && extname(entry.name) in TYPES && !entry.name.endsWith('.d.ts'))
    .map((entry) => join(entry.parentPath, entry.name));
