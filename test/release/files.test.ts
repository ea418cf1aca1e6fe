import assert from 'node:assert/strict';
import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { after, before, describe, test } from 'node:test';
import { load } from 'js-yaml';
import { extract } from 'tar';
import { PROJECT_DIR } from '#deploy/build/bundle.ts';
import { CHECKSUMS_FILE, sha256 } from '#deploy/build/checksums.ts';
import { makeFiles } from '#deploy/release/files.ts';
import { filesUrl } from '#deploy/release/project.ts';
import { VERSION } from '#shared/version.ts';

const CHART_ARCHIVE = `taintward-chart-${VERSION}.tgz`;
const FILES = {
  bill: `taintward-${VERSION}.cdx.json`,
  chart: CHART_ARCHIVE,
  npm: `taintward-npm-${VERSION}.tgz`,
  plugin: `kubectl-taintward-v${VERSION}.tar.gz`,
  pluginManifest: 'taintward.yaml',
  template: 'taintward-aws.template.json',
  accessTemplate: 'taintward-cluster-access.template.yaml',
};

/** Returns the names of the functions' archives in a template, each once. */
const archivesIn = (template: string): readonly string[] => [
  ...new Set([...template.matchAll(/\$\{CodePrefix\}([0-9a-f]{64}\.zip)/g)].map(([, name = '']) => name)),
];

/** An invalid policy, which `policy validate` must reject. */
const POLICY = 'mode: enforced\n';

describe('the files of a release', () => {
  const dir = mkdtempSync(join(tmpdir(), 'taintward-release-'));
  const made = join(dir, 'made');
  const state = join(dir, 'state');
  let service: ChildProcess;
  before(async () => {
    makeFiles(made);
    // The whole service, on its simulated cluster, which the commands query.
    const args = ['functions/service/main.ts', '--state-dir', state, '--no-console', '--log', 'json'];
    service = spawn(process.execPath, args, { cwd: PROJECT_DIR, stdio: ['ignore', 'pipe', 'ignore'] });
    for await (const line of createInterface(service.stdout ?? assert.fail())) {
      if (JSON.parse(line).event === 'relay.started') break;
    }
  });
  after(async () => {
    service.kill('SIGTERM');
    await once(service, 'exit');
    rmSync(dir, { recursive: true });
  });

  const emptyFolder = (name: string) => {
    const folder = join(dir, name);
    mkdirSync(folder);
    writeFileSync(join(folder, 'policy.yaml'), POLICY);
    return folder;
  };
  /** Runs a command in a folder without any file of the repository. */
  const run = (cwd: string, program: string, ...args: readonly string[]) =>
    spawnSync(program, args, {
      cwd,
      encoding: 'utf8',
      env: { PATH: process.env['PATH'], HOME: cwd, TMPDIR: dir },
    });

  /**
   * Asserts that the command line works: it prints its version, reads policies, completes words, and queries a
   * service.
   */
  function worksIn(folder: string, program: string, ...first: readonly string[]): void {
    const version = run(folder, program, ...first, '--version');
    assert.deepEqual([version.status, version.stdout, version.stderr], [0, `${VERSION}\n`, '']);
    const validated = run(folder, program, ...first, 'policy', 'validate', '-f', 'policy.yaml');
    assert.equal(validated.status, 1, validated.stdout);
    assert.match(validated.stderr, /policy\.yaml: .*mode/);
    const words = run(folder, program, ...first, 'complete', '--', 'pol');
    assert.match(words.stdout, /^policy/m, words.stderr);
    const status = run(folder, program, ...first, '--state-dir', state, 'status', '-o', 'json');
    assert.equal(status.status, 0, status.stderr);
    assert.equal(JSON.parse(status.stdout).clusters.length, 1);
  }

  test('are complete, with checksums that sha256sum accepts', () => {
    const archives = archivesIn(readFileSync(join(made, FILES.template), 'utf8'));
    const all = [...Object.values(FILES), ...archives];
    assert.deepEqual(readdirSync(made).toSorted(), [...all, CHECKSUMS_FILE].toSorted());
    const checked = execFileSync('sha256sum', ['--check', '--strict', CHECKSUMS_FILE], {
      cwd: made,
      encoding: 'utf8',
    });
    assert.equal(checked.match(/: OK$/gm)?.length, all.length);
  });

  test('are the same byte by byte when they are created again', () => {
    const again = join(dir, 'again');
    makeFiles(again);
    assert.equal(
      readFileSync(join(again, CHECKSUMS_FILE), 'utf8'),
      readFileSync(join(made, CHECKSUMS_FILE), 'utf8'),
    );
  });

  test('contain the command line for npm, which installs without any other package, and runs', () => {
    const folder = emptyFolder('by-npm');
    writeFileSync(join(folder, 'package.json'), '{"private": true}');
    const install = run(
      folder,
      'npm',
      'install',
      '--offline',
      '--ignore-scripts',
      '--no-audit',
      join(made, FILES.npm),
    );
    assert.equal(install.status, 0, install.stderr);
    assert.deepEqual(
      readdirSync(join(folder, 'node_modules')).filter((name) => !name.startsWith('.')),
      ['taintward'],
    );
    const { dependencies, scripts } = JSON.parse(
      readFileSync(join(folder, 'node_modules/taintward/package.json'), 'utf8'),
    );
    assert.deepEqual([dependencies, scripts], [undefined, undefined]);
    worksIn(folder, 'npx', '--offline', 'taintward');
    const plugin = run(folder, join(folder, 'node_modules/.bin/kubectl-taintward'), '--version');
    assert.equal(plugin.stdout, `${VERSION}\n`);
    const completed = run(folder, join(folder, 'node_modules/.bin/kubectl_complete-taintward'), 'pol');
    assert.match(completed.stdout, /^policy/m, completed.stderr);
  });

  test("contain the plugin of kubectl with the checksum and address in its manifest, and it runs through a link like krew's", () => {
    const { spec } = load(readFileSync(join(made, FILES.pluginManifest), 'utf8')) as {
      readonly spec: {
        readonly version: string;
        readonly platforms: readonly [
          { readonly uri: string; readonly sha256: string; readonly bin: string },
        ];
      };
    };
    const [{ uri, sha256: stated, bin }] = spec.platforms;
    assert.equal(stated, sha256(join(made, FILES.plugin)));
    assert.equal(uri, `${filesUrl(VERSION)}/${FILES.plugin}`);
    const folder = emptyFolder('by-krew');
    mkdirSync(join(folder, 'store'));
    extract({ file: join(made, FILES.plugin), cwd: join(folder, 'store'), sync: true });
    symlinkSync(join(folder, 'store', bin), join(folder, bin));
    worksIn(folder, join(folder, bin));
  });

  test('contain a command line that serves the console with its bundled page', async () => {
    const folder = join(dir, 'served');
    mkdirSync(folder);
    extract({ file: join(made, FILES.plugin), cwd: folder, sync: true });
    const args = ['kubectl-taintward', '--state-dir', state, 'console', '--no-open', '--port', '0'];
    const console = spawn(process.execPath, args, {
      cwd: folder,
      env: { HOME: folder },
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const ended = once(console, 'exit');
    let modules = 0;
    for await (const line of createInterface(console.stdout)) {
      if (!line.includes('?key=')) continue;
      const entered = await fetch(line);
      const [, path = ''] = /url=(\/[^"]+)"/.exec(await entered.text()) ?? [];
      const headers = { cookie: entered.headers.getSetCookie()[0]?.split(';')[0] ?? '' };
      const page = new URL(path, line);
      const html = await (await fetch(page, { headers })).text();
      const [, map = '{}'] = /<script type="importmap">(.*?)<\/script>/.exec(html) ?? [];
      const { imports } = JSON.parse(map) as { readonly imports: Readonly<Record<string, string>> };
      for (const module of Object.values(imports)) {
        assert.equal((await fetch(new URL(module, page), { headers })).status, 200, module);
        modules++;
      }
      console.kill('SIGTERM');
    }
    assert.deepEqual(await ended, [0, null]);
    assert.ok(modules > 3);
  });

  test('contain the chart, which helm accepts', (t) => {
    const helm = process.env['HELM'];
    if (!helm) return t.skip('HELM names no helm');
    const archive = join(made, CHART_ARCHIVE);
    const lint = run(dir, helm, 'lint', archive);
    assert.equal(lint.status, 0, lint.stdout + lint.stderr);
    const { status, stdout, stderr } = run(dir, helm, 'template', 'taintward', archive);
    assert.equal(status, 0, stderr);
    assert.ok(stdout.includes(`ghcr.io/taintward/taintward:${VERSION}`));
  });
});
