import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { load } from 'js-yaml';
import { list, type ReadEntry } from 'tar';
import * as z from 'zod';
import { packPlugin } from '#deploy/krew/pack.ts';

const URL = 'https://example.com/kubectl-taintward.tar.gz';
const line = z.string().regex(/^[^\r\n]+$/);

/** Upstream: krew, pkg/index/indexscanner and internal/index/validation, with the limits of its index's guide. */
const krewManifest = z.strictObject({
  apiVersion: z.literal('krew.googlecontainertools.github.com/v1alpha2'),
  kind: z.literal('Plugin'),
  metadata: z.strictObject({ name: z.string().regex(/^[\w-]+$/) }),
  spec: z.strictObject({
    version: z.string().regex(/^v\d+\.\d+\.\d+(-[\w.]+)?$/),
    shortDescription: line.max(50),
    description: z.string().min(1),
    caveats: z.string().optional(),
    homepage: z.url().optional(),
    platforms: z
      .array(
        z.strictObject({
          selector: z.strictObject({
            matchExpressions: z.array(
              z.strictObject({
                key: z.enum(['os', 'arch']),
                operator: z.enum(['In', 'NotIn', 'Exists', 'DoesNotExist']),
                values: z.array(z.string()),
              }),
            ),
          }),
          uri: z.url(),
          sha256: z.string().regex(/^[a-f0-9]{64}$/),
          bin: line,
          files: z.array(z.strictObject({ from: line, to: line })).min(1),
        }),
      )
      .min(1),
  }),
});

test('the plugin is one program in an archive, with a manifest that krew accepts', (t) => {
  const directory = mkdtempSync(join(tmpdir(), 'krew-'));
  t.after(() => rmSync(directory, { recursive: true }));
  const { archive, manifest } = packPlugin(directory, URL);
  const { spec } = krewManifest.parse(load(readFileSync(manifest, 'utf8')));
  const [platform = assert.fail('it has no platform')] = spec.platforms;
  assert.equal(platform.uri, URL);
  const files: string[] = [];
  list({ file: archive, sync: true, onReadEntry: ({ path }) => void files.push(path) });
  const tops = new Set(files.map((path) => path.split('/')[0]));
  assert.deepEqual([...tops].toSorted(), platform.files.map(({ from }) => from).toSorted());
  assert.ok(files.includes(platform.bin));
  const program = join(directory, platform.bin);
  assert.equal(
    `v${execFileSync(process.execPath, [program, '--version'], { encoding: 'utf8' }).trim()}`,
    spec.version,
  );
  const held = execFileSync(process.execPath, [program, 'policy', 'schema'], { encoding: 'utf8' });
  assert.match(held, /releaseRate/);
});

test('the same sources give the same archive, byte by byte, in another folder at another time', (t) => {
  const directory = mkdtempSync(join(tmpdir(), 'krew-'));
  t.after(() => rmSync(directory, { recursive: true }));
  const [one, other] = ['one', 'other'].map((name) => packPlugin(join(directory, name), URL).archive);
  assert.ok(one && other);
  const archive = readFileSync(one);
  assert.ok(archive.equals(readFileSync(other)));
  const packed: { readonly path: string; readonly [field: string]: unknown }[] = [];
  const described = ({ path, mode, mtime, uid, uname }: ReadEntry) =>
    void packed.push({ path, executable: mode !== undefined && (mode & 0o111) === 0o111, mtime, uid, uname });
  list({ file: one, sync: true, onReadEntry: described });
  const nobody = { mtime: new Date(0), uid: undefined, uname: '' };
  assert.deepEqual(packed[0], { path: 'kubectl-taintward', executable: true, ...nobody });
  for (const entry of packed.filter(({ path }) => !path.endsWith('/'))) {
    assert.deepEqual({ ...entry, ...nobody }, entry);
  }
});
