import assert from 'node:assert/strict';
import { test } from 'node:test';
import { buildSync } from 'esbuild';
import { PROJECT_DIR } from '../../../cdk/bundle.ts';

test('npm start loads nothing of the AWS SDK', () => {
  const { inputs } = buildSync({
    absWorkingDir: PROJECT_DIR,
    entryPoints: ['functions/local/main.ts'],
    bundle: true,
    write: false,
    metafile: true,
    platform: 'node',
    format: 'esm',
    logLevel: 'error',
  }).metafile;
  const paths = Object.keys(inputs);
  assert.ok(paths.includes('functions/local/service.ts'));
  assert.deepEqual(
    paths.filter((path) => /node_modules\/(@aws-sdk|@smithy)\//.test(path)),
    [],
  );
});
