import { chmodSync, mkdirSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { type BuildOptions, buildSync, type Metafile } from 'esbuild';

/** The repository. */
export const PROJECT_DIR = join(import.meta.dirname, '../..');

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

/** What the image runs, one program each: the entry that it is made of. */
const PROGRAMS = {
  relay: 'functions/relay/main.ts',
  agent: 'functions/agent/main.ts',
  service: 'functions/service/main.ts',
} as const;

export type ProgramName = keyof typeof PROGRAMS;

export const PROGRAM_NAMES = Object.keys(PROGRAMS) as readonly ProgramName[];

/** The file of a program's bundle. */
export const programFile = (name: ProgramName): string => `${name}.mjs`;

const NODE_HTTP = './cdk/node-http.ts';

/**
 * Bundles a function with all it imports, the AWS SDK too (Lambda's own is of no fixed version and loads slower), into
 * one file and its source map in `outDir`. Throws when it cannot be built. Returns what went into it.
 */
export function bundleFunction(name: FunctionName, outDir: string): Metafile {
  return bundle(`${roomOf(name)}/lambda.ts`, BUNDLE_FILE, outDir);
}

/** Bundles a program of the image, likewise, in parts. */
export function bundleProgram(name: ProgramName, outDir: string): Metafile {
  return bundleInParts(PROGRAMS[name], name, outDir);
}

/** CommonJS packages inside call `require`, which an ESM file does not have by itself. */
const REQUIRE = "import{createRequire}from'node:module';const require=createRequire(import.meta.url);";

/**
 * Bundles the command line into `outDir`/`outfile`, likewise, as a program for whichever Node is at hand, from 22.13 on. It has no
 * source map, for nobody starts it with one.
 */
export function bundleCommandLine(outfile: string, outDir: string): Metafile {
  const metafile = bundle('functions/cli/main.ts', outfile, outDir, {
    target: 'node22',
    banner: { js: `#!/usr/bin/env node\n${REQUIRE}` },
    sourcemap: false,
  });
  chmodSync(join(outDir, outfile), 0o755);
  return metafile;
}

/** Bundles what `entry`, a path from the repository, imports into `outDir`/`outfile`, likewise; `other` is what differs. */
export function bundle(
  entry: string,
  outfile: string,
  outDir: string,
  other: Pick<BuildOptions, 'target' | 'banner' | 'sourcemap'> = {},
): Metafile {
  return build(outDir, { entryPoints: [entry], outfile, ...other });
}

/**
 * Bundles what `entry` imports into `outDir`/`name`.mjs, likewise, but what it loads only when it needs it, and what both need, into files
 * of their own beside it, named after it: the generated Kubernetes client alone is 4 MB of text, which V8 keeps in memory whether or not it is used.
 */
export function bundleInParts(entry: string, name: string, outDir: string): Metafile {
  return build(outDir, {
    entryPoints: { [name]: entry },
    outdir: '.',
    outExtension: { '.js': '.mjs' },
    splitting: true,
    chunkNames: `${name}-[name]-[hash]`,
  });
}

/** Builds as `options` say, whose paths are as if all went into the project, so that a source map says the same wherever it goes. */
function build(outDir: string, options: Omit<BuildOptions, 'write' | 'metafile'>): Metafile {
  const { metafile, outputFiles } = buildSync({
    absWorkingDir: PROJECT_DIR,
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
    alias: { http: NODE_HTTP, 'node:http': NODE_HTTP },
    banner: { js: REQUIRE },
    // For whoever reads a stack trace. Nobody is to run this with --enable-source-maps: pino asks for its caller, so Node would parse
    // the whole map at each start, which takes a cold function half as long again and costs a relay 17 MB.
    sourcemap: 'linked',
    sourcesContent: false,
    legalComments: 'none',
    metafile: true,
    logLevel: 'silent',
    ...options,
  });
  mkdirSync(outDir, { recursive: true });
  for (const { path, contents } of outputFiles) writeFileSync(join(outDir, basename(path)), contents);
  return metafile;
}
