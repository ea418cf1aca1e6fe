import { chmodSync, mkdirSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { type BuildOptions, buildSync, type Metafile } from 'esbuild';

/** The repository's root. */
export const PROJECT_DIR = join(import.meta.dirname, '../..');

/** The deployed functions, each with the folder of its entry `lambda.ts`. */
const ROOMS = {
  'node-delta': 'deltas',
  'pod-delta': 'deltas',
  evict: 'evict',
  expiry: 'expiry',
  heartbeat: 'heartbeat',
} as const;

export type FunctionName = keyof typeof ROOMS;

export const FUNCTION_NAMES = Object.keys(ROOMS) as readonly FunctionName[];

/** Returns the folder of a function's code, from the repository. */
export const roomOf = (name: FunctionName): string => `functions/${ROOMS[name]}`;

/** The file of a function's bundle that Lambda loads. */
export const BUNDLE_FILE = 'lambda.mjs';

/** The programs of the image, each with its entry. */
const PROGRAMS = {
  relay: 'functions/relay/main.ts',
  agent: 'functions/agent/main.ts',
  service: 'functions/service/main.ts',
} as const;

export type ProgramName = keyof typeof PROGRAMS;

export const PROGRAM_NAMES = Object.keys(PROGRAMS) as readonly ProgramName[];

/** Returns the file name of a program's bundle. */
export const programFile = (name: ProgramName): string => `${name}.mjs`;

const NODE_HTTP = './cdk/node-http.ts';
const ALIAS = { http: NODE_HTTP, 'node:http': NODE_HTTP };
const LAMBDA_SDK = './cdk/lambda-sdk.ts';
/** The replaced packages in the bundle of a function. */
export const LAMBDA_ALIAS = {
  ...ALIAS,
  '@aws-sdk/credential-provider-node': LAMBDA_SDK,
  '@smithy/core/event-streams': LAMBDA_SDK,
};

/**
 * Bundles a function with all its imports into one file and its source map in `outDir`. The AWS SDK is included, because Lambda's
 * own has no fixed version and loads slower. Throws when the bundle cannot be built. Returns the inputs of the bundle.
 */
export function bundleFunction(name: FunctionName, outDir: string): Metafile {
  return bundle(`${roomOf(name)}/lambda.ts`, BUNDLE_FILE, outDir, { alias: LAMBDA_ALIAS });
}

/** Bundles a program of the image in parts. Throws and returns as `bundleFunction` does. */
export function bundleProgram(name: ProgramName, outDir: string): Metafile {
  return bundleInParts(PROGRAMS[name], name, outDir);
}

/** Bundled CommonJS packages call `require`, which an ESM file lacks. */
const REQUIRE = "import{createRequire}from'node:module';const require=createRequire(import.meta.url);";

/**
 * Bundles the command line into `outDir`/`outfile`, as a program for Node.js 22.13 or later. Users start it without source maps,
 * so it has none.
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

/** Bundles the imports of `entry`, a path from the repository, into `outDir`/`outfile`; `other` overrides the options. */
export function bundle(
  entry: string,
  outfile: string,
  outDir: string,
  other: Pick<BuildOptions, 'target' | 'banner' | 'sourcemap' | 'alias'> = {},
): Metafile {
  return build(outDir, { entryPoints: [entry], outfile, ...other });
}

/**
 * Bundles the imports of `entry` into `outDir`/`name`.mjs. Code that is loaded on demand, and code that both parts need, is put
 * into files of their own beside it, named after it. The generated Kubernetes client alone is 4 MB of text, which V8 keeps in
 * memory even if it is unused.
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

/** Builds with `options`, whose paths are relative to the project, so that a source map is the same for any output directory. */
function build(outDir: string, options: Omit<BuildOptions, 'write' | 'metafile'>): Metafile {
  const { metafile, outputFiles } = buildSync({
    absWorkingDir: PROJECT_DIR,
    write: false,
    bundle: true,
    minify: true,
    // Stack traces name classes and functions even without the source map.
    keepNames: true,
    platform: 'node',
    target: 'node24',
    format: 'esm',
    // Packages have their path in `node_modules`, also in the source map, even if they are links.
    preserveSymlinks: true,
    // The ESM entry of a package is smaller, because unused code can be removed.
    mainFields: ['module', 'main'],
    alias: ALIAS,
    banner: { js: REQUIRE },
    // The source map is for developers who read a stack trace. Don't run bundles with --enable-source-maps: Node would parse the
    // whole map at each start, and a cold start would take a fifth longer.
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
