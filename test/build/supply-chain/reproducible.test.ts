import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import {
  cpSync,
  globSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  utimesSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { promisify } from 'node:util';
import { FileSystem } from 'aws-cdk-lib';
import {
  BUNDLE_FILE,
  FUNCTION_NAMES,
  PROGRAM_NAMES,
  PROJECT_DIR,
  programFile,
} from '#deploy/build/bundle.ts';
import { locked } from '#test/unit/supply-chain/lockfile.ts';
import { billFile } from '../../../cdk/bundle-image.ts';

/** What is built from, of the repository. */
const SOURCES = [
  ...['cdk', 'deploy/build', 'functions', 'shared', 'simulator'],
  ...['LICENSE', 'package.json', 'package-lock.json', 'tsconfig.json'],
];

/** Somebody's copy of the project, and what was built from it. */
interface Build {
  readonly project: string;
  readonly out: string;
  /** What `npm run bundles` says. */
  readonly hashes: string;
}

async function build(project: string, env: NodeJS.ProcessEnv, writtenAt: Date): Promise<Build> {
  for (const source of SOURCES) cpSync(join(PROJECT_DIR, source), join(project, source), { recursive: true });
  for (const file of globSync('{cdk,deploy,functions,shared,simulator}/**/*.ts', { cwd: project })) {
    utimesSync(join(project, file), writtenAt, writtenAt);
  }
  symlinkSync(join(PROJECT_DIR, 'node_modules'), join(project, 'node_modules'));
  const out = join(project, 'out');
  const { stdout } = await promisify(execFile)(process.execPath, ['cdk/bundle-hashes.ts', out], {
    cwd: project,
    env: { ...process.env, ...env },
  });
  return { project, out, hashes: stdout };
}

describe('what is deployed, built twice, in two folders, by clocks of two zones and of files of two years,', () => {
  const dir = mkdtempSync(join(tmpdir(), 'taintward-reproducible-'));
  let builds: readonly [Build, Build];
  before(async () => {
    builds = await Promise.all([
      build(join(dir, 'one'), { TZ: 'Pacific/Auckland', LANG: 'C' }, new Date('2001-01-01')),
      build(join(dir, 'another', 'further', 'down'), { TZ: 'UTC', LANG: 'de_DE.UTF-8' }, new Date()),
    ]);
  });
  after(() => rmSync(dir, { recursive: true }));

  const filesOf = ({ out }: Build) =>
    readdirSync(out, { recursive: true, withFileTypes: true }).flatMap((entry) =>
      entry.isFile() ? [join(entry.parentPath, entry.name)] : [],
    );

  test('is the same byte by byte', () => {
    const [one, other] = builds;
    assert.equal(one.hashes, other.hashes);
    // Each has its bundle, a program in parts, and their source maps, each program its bill besides; then there is what the programs read.
    const namesOf = (pattern: RegExp) =>
      [...one.hashes.matchAll(pattern)]
        .map(([, name = '']) => name)
        .filter((name) => !name.includes('/page/'));
    const bundles = namesOf(/ {2}(.*\.mjs)$/gm);
    for (const name of FUNCTION_NAMES) assert.ok(bundles.includes(`${name}/${BUNDLE_FILE}`), name);
    for (const name of PROGRAM_NAMES) assert.ok(bundles.includes(`image/${programFile(name)}`), name);
    assert.deepEqual(namesOf(/ {2}(.*)\.map$/gm), bundles);
    const count = (pattern: RegExp) => [...one.hashes.matchAll(pattern)].length;
    assert.equal(count(/\.cdx\.json$/gm), PROGRAM_NAMES.length);
    assert.match(one.hashes, / {2}image\/page\/index\.html$/m);
  });

  test('is the same asset to the CDK, so that nothing is deployed anew that did not change', () => {
    const [one, other] = builds;
    for (const name of FUNCTION_NAMES) {
      assert.equal(
        FileSystem.fingerprint(join(one.out, name)),
        FileSystem.fingerprint(join(other.out, name)),
      );
    }
  });

  test('names no folder of the machine it was built on', () => {
    for (const { project, ...one } of builds) {
      for (const file of filesOf({ project, ...one })) {
        const content = readFileSync(file, 'utf8');
        for (const place of [project, dir, PROJECT_DIR, process.env['HOME'] ?? PROJECT_DIR]) {
          assert.ok(!content.includes(`${place}/`), `${file} names ${place}`);
        }
        if (!file.endsWith('.map')) continue;
        const { sources } = JSON.parse(content) as { readonly sources: readonly string[] };
        assert.deepEqual(
          sources.filter((source) => /^(\.\.|\/)/.test(source)),
          [],
        );
      }
    }
  });

  test('has a bill whose packages are those of the lockfile, by the hash of their archives', () => {
    const [{ out }] = builds;
    const listed = PROGRAM_NAMES.map((program) => {
      const { components } = JSON.parse(readFileSync(join(out, 'image', billFile(program)), 'utf8'));
      assert.ok(components.length > 20);
      return components;
    });
    for (const { name, version, hashes } of listed.flat()) {
      const [{ content = '' } = {}] = hashes as { content?: string }[];
      const integrity = `sha512-${Buffer.from(content, 'hex').toString('base64')}`;
      const found = locked.find((each) => each.name === name && each.version === version);
      assert.equal(integrity, found?.integrity, name);
    }
  });
});
