import { spawnSync } from 'node:child_process';
import { existsSync, globSync } from 'node:fs';
import { delimiter, isAbsolute, join } from 'node:path';
import { MissingError } from './missing-error.ts';

/** The tested versions. LocalStack also starts with 3.12, but DynamoDB then fails (`threading.Lock | None`). */
const PYTHONS = ['3.13'];
const MIN_PYTHON = [3, 13] as const;
const MIN_JAVA = 17;

/** The environment for finding programs: `process.env`, except in tests. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** Returns the output of a program, or `undefined` where it is missing or fails. */
function outputOf(program: string, args: readonly string[], env: Environment): string | undefined {
  const { status, stdout, stderr } = spawnSync(program, args, { env, encoding: 'utf8' });
  return status === 0 ? stdout + stderr : undefined;
}

/** Returns Python 3.13 or newer: the one in PYTHON, or one on the PATH, or one of pyenv's. */
export function findPython(env: Environment): string {
  const given = env['PYTHON'];
  const candidates =
    given === undefined ? [...PYTHONS.map((it) => `python${it}`), 'python3', ...ofPyenv(env)] : [given];
  const found = candidates.find((program) => isPython(program, env));
  if (found !== undefined) return found;
  const tried = given === undefined ? 'no python3 on the PATH is' : `PYTHON=${given} is not`;
  throw new MissingError(
    `LocalStack needs Python ${MIN_PYTHON.join('.')} or newer, and ${tried}: install it, or name one by PYTHON=….`,
  );
}

function isPython(program: string, env: Environment): boolean {
  const [, major, minor] = /^Python (\d+)\.(\d+)/.exec(outputOf(program, ['--version'], env) ?? '') ?? [];
  return Number(major) === MIN_PYTHON[0] && Number(minor) >= MIN_PYTHON[1];
}

/** Returns the versions that pyenv installed, whether or not they are selected. */
function ofPyenv(env: Environment): readonly string[] {
  const root = outputOf('pyenv', ['root'], env)?.trim();
  return root ? PYTHONS.flatMap((version) => globSync(join(root, `versions/${version}*/bin/python`))) : [];
}

/** Returns Java 17 or newer, as an absolute path: that of JAVA_HOME, or the first one on the PATH. */
export function findJava(env: Environment): string {
  const home = env['JAVA_HOME'];
  const folders = [...(home ? [join(home, 'bin')] : []), ...(env['PATH'] ?? '').split(delimiter)];
  const found = folders
    .filter(isAbsolute)
    .map((folder) => join(folder, 'java'))
    .find((program) => existsSync(program) && javaRelease(program, env) >= MIN_JAVA);
  if (found !== undefined) return found;
  throw new MissingError(
    `LocalStack needs Java ${MIN_JAVA} or newer, for DynamoDB Local: install it, or name its folder by JAVA_HOME=….`,
  );
}

const javaRelease = (program: string, env: Environment): number =>
  Number(/version "(\d+)/.exec(outputOf(program, ['-version'], env) ?? '')?.[1] ?? 0);

/** Returns Maven, which is needed once. */
export function findMaven(env: Environment): string {
  if (outputOf('mvn', ['--version'], env) !== undefined) return 'mvn';
  throw new MissingError(
    'LocalStack needs Maven (mvn) once, to install DynamoDB Local: put it on the PATH, and run this again.',
  );
}

/** Returns the npm of the running Node.js, or the one on the PATH: its program and first arguments. */
export function findNpm(env: Environment): readonly [string, ...string[]] {
  const script = env['npm_execpath'];
  return script !== undefined && existsSync(script) ? [process.execPath, script] : ['npm'];
}
