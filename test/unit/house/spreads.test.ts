import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { codeIn } from './literals.ts';

const ROOT = join(import.meta.dirname, '../../..');
const CODE = '{functions,shared,cdk,deploy,docs,simulator,test}/**/*.ts';

test('an object literal names its properties, instead of spreading another literal', () => {
  const spread = globSync(CODE, { cwd: ROOT, exclude: ['**/node_modules'] }).filter((file) =>
    /\.\.\.\s*\{/.test(codeIn(readFileSync(join(ROOT, file), 'utf8'))),
  );
  assert.deepEqual(spread, []);
});
