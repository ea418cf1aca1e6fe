import { mkdirSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { buildSync, type Metafile } from 'esbuild';

/** The repository. */
export const PROJECT_DIR = join(import.meta.dirname, '..');

/** The functions that are deployed, and the folder each one's entry `lambda.ts` is in. */
const ROOMS = {
  'node-delta': 'deltas',
  'pod-delta': 'deltas',
  evict: 'evict',
  expiry: 'expiry',
  heartbeat: 'heartbeat',
} as const;

export type FunctionName = keyof typeof ROOMS;

export const FUNCTION_NAMES = Object.keys(ROOMS) as readonly FunctionName[];

/** The folder of a function's code, from the repository. */
export const roomOf = (name: FunctionName): string => `functions/${ROOMS[name]}`;

/** The file of a function's bundle that Lambda loads. */
export const BUNDLE_FILE = 'lambda.mjs';

/** The file of the relay's bundle. */
export const RELAY_FILE = 'relay.mjs';

/** The bill of materials beside it, as CycloneDX. */
export const BILL_FILE = 'relay.cdx.json';

/**
 * Bundles a function with all it imports, the AWS SDK too (Lambda's own is of no fixed version and loads slower), into
 * one file and its source map in `outDir`. Throws when it cannot be built. Returns what went into it.
 */
export function bundleFunction(name: FunctionName, outDir: string): Metafile {
  return bundle(`${roomOf(name)}/lambda.ts`, BUNDLE_FILE, outDir);
}

/** Bundles the relay, likewise. */
export function bundleRelay(outDir: string): Metafile {
  return bundle('functions/watch-relay/main.ts', RELAY_FILE, outDir);
}

/** Bundles what `entry`, a path from the repository, imports into `outDir`/`outfile`, likewise. */
export function bundle(entry: string, outfile: string, outDir: string): Metafile {
  const { metafile, outputFiles } = buildSync({
    absWorkingDir: PROJECT_DIR,
    entryPoints: [entry],
    // As if into the project, so that the source map says the same wherever the bundle goes.
    outfile,
    write: false,
    bundle: true,
    minify: true,
    // A stack trace names classes and functions even where the source map is not at hand.
    keepNames: true,
    platform: 'node',
    target: 'node24',
    format: 'esm',
    // Wherever the packages are linked from, they are those of `node_modules`, in the source map too.
    preserveSymlinks: true,
    // What packages offer for ESM is smaller, because what is not used can be left out.
    mainFields: ['module', 'main'],
    // CommonJS packages inside call `require`, which an ESM file does not have by itself.
    banner: { js: "import{createRequire}from'node:module';const require=createRequire(import.meta.url);" },
    sourcemap: 'linked',
    sourcesContent: false,
    legalComments: 'none',
    metafile: true,
    logLevel: 'silent',
  });
  mkdirSync(outDir, { recursive: true });
  for (const { path, contents } of outputFiles) writeFileSync(join(outDir, basename(path)), contents);
  return metafile;
}
