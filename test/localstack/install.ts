import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { type Environment, findJava, findMaven, findNpm, findPython } from './programs.ts';

/** The last release of LocalStack 4, which requires no token. */
export const LOCALSTACK_VERSION = '4.14.0';
const RIC_VERSION = '4.0.2';

const HERE = import.meta.dirname;
const REQUIREMENTS = join(HERE, 'requirements.txt');
const DYNAMODB_POM = join(HERE, '../../.ci/dynamodb-local.xml');

/** The paths of the installed programs. */
export interface Installed {
  readonly python: string;
  readonly java: string;
  /** The folder of DynamoDB Local's jars. */
  readonly dynamoDb: string;
  /** The folder of Amazon's runtime interface client for Node.js. */
  readonly ric: string;
}

export interface InstallOptions {
  readonly env: Environment;
  /** Called with each step that takes time. */
  readonly note: (text: string) => void;
  /** Ends the installing programs. */
  readonly signal: AbortSignal;
}

/** Returns the folder in which everything is installed once, for all clones of the repository. */
export const cacheFolder = (env: Environment): string =>
  join(env['XDG_CACHE_HOME'] || join(homedir(), '.cache'), 'taintward-ci');

/**
 * Installs missing programs into the cache: LocalStack by pip, DynamoDB Local by Maven, and the runtime interface
 * client by npm. Throws `MissingError` before anything is installed, and where one of them fails.
 */
export async function install({ env, note, signal }: InstallOptions): Promise<Installed> {
  const cache = cacheFolder(env);
  const java = findJava(env);
  const venv = join(cache, `localstack-${LOCALSTACK_VERSION}-${hashOf(REQUIREMENTS)}`);
  const dynamoDb = join(cache, 'dynamodb-local');
  const lambda = join(cache, `lambda-ric-${RIC_VERSION}`);
  const venvReady = join(venv, 'installed');
  // Check all requirements before the first installation, which takes minutes.
  const basePython = existsSync(venvReady) ? '' : findPython(env);
  const maven = existsSync(dynamoDb) ? '' : findMaven(env);
  mkdirSync(cache, { recursive: true });
  const run = (program: string, args: readonly string[]) => runQuietly(program, args, { env, signal });

  if (basePython) {
    note(`installing LocalStack ${LOCALSTACK_VERSION} by pip, once (half a gigabyte)`);
    rmSync(venv, { recursive: true, force: true });
    await run(basePython, ['-m', 'venv', venv]);
    const pip = ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check'];
    await run(join(venv, 'bin/python'), [...pip, '--no-deps', '--requirement', REQUIREMENTS]);
    writeFileSync(venvReady, '');
  }
  if (maven) {
    note('installing DynamoDB Local by Maven, once');
    const args = ['-q', '-B', '-f', DYNAMODB_POM, 'dependency:copy-dependencies', '-DincludeScope=runtime'];
    await placed(dynamoDb, (folder) => run(maven, [...args, `-DoutputDirectory=${folder}`]));
  }
  if (!existsSync(lambda)) {
    note("installing Amazon's runtime interface client by npm, once");
    const [npm, ...first] = findNpm(env);
    const args = ['install', '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error'];
    await placed(lambda, (folder) =>
      run(npm, [...first, ...args, '--prefix', folder, `aws-lambda-ric@${RIC_VERSION}`]),
    );
  }
  const ric = join(lambda, 'node_modules/aws-lambda-ric');
  placeClient(ric);
  return { python: join(venv, 'bin/python'), java, dynamoDb, ric };
}

/**
 * Creates a stand-in for the native addon, which is not compiled: `require('./rapid-client.node')` also accepts a
 * folder.
 */
function placeClient(ric: string): void {
  const folder = join(ric, 'rapid-client.node');
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, 'package.json'), '{"main":"rapid-client.cjs"}');
  copyFileSync(join(HERE, 'host/rapid-client.cjs'), join(folder, 'rapid-client.cjs'));
}

/** Fills a temporary folder, and renames it when it is complete. The first of concurrent processes wins. */
async function placed(folder: string, fill: (beside: string) => Promise<void>): Promise<void> {
  const beside = `${folder}.${process.pid}`;
  try {
    mkdirSync(beside, { recursive: true });
    await fill(beside);
    if (!existsSync(folder)) renameSync(beside, folder);
  } finally {
    rmSync(beside, { recursive: true, force: true });
  }
}

const hashOf = (file: string): string =>
  createHash('sha256').update(readFileSync(file)).digest('hex').slice(0, 8);

/** Runs a program. Rejects, with all of its output, when it fails. */
async function runQuietly(
  program: string,
  args: readonly string[],
  { env, signal }: Pick<InstallOptions, 'env' | 'signal'>,
): Promise<void> {
  const child = spawn(program, args, { env, signal, stdio: ['ignore', 'pipe', 'pipe'] });
  let printed = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      printed += text;
    });
  }
  const [code] = await once(child, 'close', { signal });
  if (code !== 0) throw new Error(`${program} ${args.join(' ')} ended with ${code}:\n${printed}`);
}
