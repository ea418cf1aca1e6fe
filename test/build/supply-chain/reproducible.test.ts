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
import { locked } from '#test/unit/deploy/build/lockfile.ts';
import { billFile } from '../../../cdk/bundle-image.ts';

/** The inputs of a build in the repository. */
const SOURCES = [
  ...['cdk', 'deploy/build', 'functions', 'shared', 'simulator'],
  ...['LICENSE', 'package.json', 'package-lock.json', 'tsconfig.json'],
];

/** A copy of the project, and the output of its build. */
interface Build {
  readonly project: string;
  readonly out: string;
  /** The output of `npm run bundles`. */
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

describe('the deployed files, built twice in two folders, with clocks of two zones and files of two years,', () => {
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

  test('are the same byte by byte', () => {
    const [one, other] = builds;
    assert.equal(one.hashes, other.hashes);
    // Each function has its bundle; a program has its parts; all have source maps. Each program also has its bill of
    // materials and its data files.
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

  test('are the same asset to the CDK, so that nothing unchanged is deployed again', () => {
    const [one, other] = builds;
    for (const name of FUNCTION_NAMES) {
      assert.equal(
        FileSystem.fingerprint(join(one.out, name)),
        FileSystem.fingerprint(join(other.out, name)),
      );
    }
  });

  test('name no folder of the machine that built them', () => {
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

  test("have a bill of materials with the lockfile's packages, by the hash of their archives", () => {
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
