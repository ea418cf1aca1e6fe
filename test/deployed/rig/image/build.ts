import { spawnSync } from 'node:child_process';
import { chmodSync, cpSync, mkdirSync, readFileSync, statSync, symlinkSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { PROJECT_DIR } from '#deploy/build/bundle.ts';

/** An image that was built without Docker: its file system consists of folders. */
export interface Image {
  /** The folder that stands for `/`. */
  readonly root: string;
  readonly workdir: string;
  readonly env: Readonly<Record<string, string>>;
  readonly user: string;
  /** The command, as words. */
  readonly command: readonly string[];
}

type Stage = { -readonly [Key in keyof Image]: Image[Key] };

/** The allowed base of a stage: a Node image of this release, for whose contents the running Node stands in. */
const BASE = new RegExp(`/node:${process.versions.node.split('.')[0]}\\.[\\d.]+-slim@sha256:[0-9a-f]{64}$`);

/** The folder of Node in the base image. */
export const NODE_DIR = 'usr/local/bin';

/**
 * Builds the stages of a Dockerfile in folders below `dir`: `COPY` copies, `RUN` runs, from the context of `docker
 * build`. Throws where a command fails, or where an instruction is not supported.
 */
export function buildImage(context: string, dir: string): Image {
  const stages = new Map<string, Stage>();
  let stage: Stage | undefined;
  for (const [instruction, rest] of instructionsOf(readFileSync(join(context, 'Dockerfile'), 'utf8'))) {
    if (instruction === 'FROM') {
      const name = / AS (\S+)$/.exec(rest)?.[1] ?? String(stages.size);
      stage = baseStage(join(dir, name), rest);
      stages.set(name, stage);
    } else if (stage) {
      follow(stage, instruction, rest, { context, stages });
    }
  }
  if (stage === undefined) throw new Error('A Dockerfile begins with FROM.');
  return stage;
}

/** Returns the instructions with their arguments; continued lines are joined. */
function instructionsOf(dockerfile: string): readonly (readonly [string, string])[] {
  const lines = dockerfile
    .split('\n')
    .filter((line) => !line.startsWith('#'))
    .join('\n')
    .replaceAll('\\\n', ' ')
    .split('\n');
  return lines.flatMap((line) => {
    const found = /^(\S+) (.*)$/.exec(line);
    return found ? [[found[1] ?? '', found[2] ?? ''] as const] : [];
  });
}

function baseStage(root: string, rest: string): Stage {
  const [image = ''] = rest.split(' ').filter((word) => !word.startsWith('--'));
  if (!BASE.test(image)) throw new Error(`Nothing stands in for the base image ${image}.`);
  mkdirSync(join(root, NODE_DIR), { recursive: true });
  cpSync(process.execPath, join(root, NODE_DIR, 'node'));
  chmodSync(join(root, NODE_DIR, 'node'), 0o755);
  return { root, workdir: '/', env: {}, user: 'root', command: [] };
}

function follow(
  stage: Stage,
  instruction: string,
  rest: string,
  { context, stages }: { readonly context: string; readonly stages: ReadonlyMap<string, Stage> },
): void {
  switch (instruction) {
    case 'WORKDIR':
      stage.workdir = rest;
      mkdirSync(join(stage.root, rest), { recursive: true });
      return;
    case 'ENV':
      for (const [, name = '', quoted, plain = ''] of rest.matchAll(/(\w+)=(?:"([^"]*)"|(\S+))/g)) {
        stage.env = { ...stage.env, [name]: quoted ?? plain };
      }
      return;
    case 'USER':
      stage.user = rest;
      return;
    case 'CMD':
      stage.command = JSON.parse(rest) as readonly string[];
      return;
    case 'COPY':
      copy(stage, rest, (from) => {
        if (from === undefined) return context;
        const source = stages.get(from);
        if (source === undefined) throw new Error(`There is no stage ${from}.`);
        return source.root;
      });
      return;
    case 'RUN':
      runIn(stage, rest);
      return;
    case 'EXPOSE':
    case 'LABEL':
      return;
    default:
      throw new Error(`Nothing stands in for ${instruction}.`);
  }
}

function copy(stage: Stage, rest: string, rootOf: (from: string | undefined) => string): void {
  const words = rest.split(' ');
  const from = words.find((word) => word.startsWith('--from='))?.slice('--from='.length);
  const paths = words.filter((word) => !word.startsWith('--'));
  const [to = '', ...sources] = paths.toReversed();
  const target = join(stage.root, to.startsWith('/') ? to : join(stage.workdir, to));
  const isFolder = to.endsWith('/') || sources.length > 1;
  for (const path of sources) {
    const source = join(rootOf(from), path);
    // Docker copies the contents of a folder, not the folder.
    const into = isFolder && statSync(source).isFile() ? join(target, basename(path)) : target;
    mkdirSync(dirname(into), { recursive: true });
    cpSync(source, into, { recursive: true });
  }
}

function runIn({ root, workdir, env }: Stage, command: string): void {
  if (/(^|\s)\//.test(command)) {
    throw new Error(`RUN ${command} names an absolute path, which leads out of the image.`);
  }
  const cwd = join(root, workdir);
  if (command.startsWith('npm ci')) {
    linkInstalled(cwd);
    return;
  }
  const { PATH = '', HOME = '' } = process.env;
  const { status, stdout, stderr } = spawnSync('sh', ['-c', command], {
    cwd,
    env: { PATH: `${join(root, NODE_DIR)}:${PATH}`, HOME, ...env },
    encoding: 'utf8',
  });
  if (status !== 0) throw new Error(`RUN ${command} ended with ${status}:\n${stdout}${stderr}`);
}

/** The repository has the result of `npm ci` for the same lockfile; half a gigabyte need not be downloaded again. */
function linkInstalled(dir: string): void {
  const lock = (of: string) => readFileSync(join(of, 'package-lock.json'), 'utf8');
  if (lock(dir) !== lock(PROJECT_DIR)) throw new Error('The image is built by another package-lock.json.');
  symlinkSync(join(PROJECT_DIR, 'node_modules'), join(dir, 'node_modules'));
}
