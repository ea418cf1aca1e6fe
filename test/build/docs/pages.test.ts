import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { relative } from 'node:path';
import { test } from 'node:test';
import { PROJECT_DIR } from '#deploy/build/bundle.ts';
import * as constants from '#shared/telemetry/metrics.ts';
import { ownMetrics } from '../../../cdk/metrics.ts';
import { metricsCatalogue } from '../../../docs/generator/metrics-catalogue.ts';
import { pages } from '../../../docs/generator/pages.ts';

test('generated pages match the code', async () => {
  for (const { path, text } of await pages()) {
    const found = readFileSync(path, 'utf8');
    assert.ok(
      found === text,
      `${relative(PROJECT_DIR, path)} is not what the code says: write it anew with npm run docs`,
    );
  }
});

test('the catalogue has all metrics that CloudWatch receives, and the stack reads them all', async () => {
  const catalogue = await metricsCatalogue();
  const written = catalogue.filter(({ cloudWatch }) => cloudWatch).map(({ name }) => name);
  assert.deepEqual(written, Object.values(constants).toSorted());
  const { late, ...read } = ownMetrics('taintward');
  const names = [late('p50'), ...Object.values(read)].map(({ metricName }) => metricName);
  assert.deepEqual(names.toSorted(), written);
});
