import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { PROJECT_DIR } from '#deploy/build/bundle.ts';

/** A package's entry in the lockfile. See npm's "package-lock.json". */
export interface Locked {
  /** Install path: `node_modules/NAME`, or a path within another package. */
  readonly path: string;
  readonly name: string;
  readonly version: string;
  readonly license?: string;
  readonly integrity?: string;
  readonly resolved?: string;
  readonly link?: boolean;
  /** The archive of the containing package includes the package. */
  readonly inBundle?: boolean;
  readonly hasInstallScript?: boolean;
  /** No deployed package needs it. */
  readonly dev?: boolean;
}

type Entry = Partial<Omit<Locked, 'path'>> & {
  readonly dependencies?: object;
  readonly devDependencies?: object;
};

const readJson = (name: string) => JSON.parse(readFileSync(join(PROJECT_DIR, name), 'utf8'));

export const manifest = readJson('package.json') as {
  readonly dependencies: Readonly<Record<string, string>>;
  readonly devDependencies: Readonly<Record<string, string>>;
  readonly allowScripts: Readonly<Record<string, boolean>>;
};

const { '': root = {}, ...entries } = (
  readJson('package-lock.json') as { packages: Readonly<Record<string, Entry>> }
).packages;

/** The lockfile's entry of this project. */
export const lockedRoot = root;

export const locked: readonly Locked[] = Object.entries(entries).map(([path, entry]) => ({
  name: path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length),
  version: '',
  ...entry,
  path,
}));

/** Packages that can be deployed. */
export const production = locked.filter(({ dev }) => !dev);
