import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { DEFAULT_POLICY, type policyDocument } from '#shared/eviction/policy.ts';
import {
  documentOf,
  parsePolicyDocument,
  policyJsonSchema,
  policyText,
} from '#shared/state/policy-document.ts';

const GUIDE = readFileSync(join(import.meta.dirname, '../../../docs/reference/policy.md'), 'utf8');

/** A value other than the default for each declared setting, with the settings that it requires. */
const OTHERS: Readonly<Record<keyof typeof policyDocument.def.in.def.in.shape, string>> = {
  mode: 'mode: enforce',
  guard: 'guard: { zone: off, customTaints: { window: 90s } }',
  evictionRate: 'evictionRate: 2.5',
  maxEvictionsPerWorkload: 'maxEvictionsPerWorkload: { count: 10%, window: 5m }',
  releaseRate: 'releaseRate: 7',
  exclude: 'exclude: [{ namespaces: [kube-system], until: 2026-12-24T00:00:00.000Z }]',
  include: 'include: [{ labels: { matchLabels: { tier: web } } }]',
  method: 'method: evict',
  evict: 'method: evict\nevict: { timeout: 4h, onTimeout: fail }',
  tolerationSecondsOverrides: 'tolerationSecondsOverrides: { maintenance: 60 }',
  requireExpiredLease: 'requireExpiredLease: false',
  treatAsNoExecute: 'treatAsNoExecute: [maintenance]',
  giveUpAfter: 'giveUpAfter: 2d',
};

const policyWith = (setting: string) =>
  parsePolicyDocument(setting.startsWith('mode:') ? setting : `mode: observe\n${setting}`);

for (const [name, setting] of Object.entries(OTHERS)) {
  describe(`the setting ${name}`, () => {
    const policy = policyWith(setting);

    test('is written in a policy document that reads back as the same policy', () => {
      assert.notDeepEqual(documentOf(policy)[name], documentOf(DEFAULT_POLICY)[name]);
      assert.deepEqual(parsePolicyDocument(policyText(policy)), policy);
    });

    test('is described in the schema and the guide', () => {
      const { properties } = policyJsonSchema() as { properties: Record<string, { description?: string }> };
      assert.match(properties[name]?.description ?? '', /\.$/);
      assert.ok(
        new RegExp(`\`${name}[\`.]`).test(GUIDE),
        `docs/reference/policy.md lacks ${name}: run npm run docs`,
      );
    });
  });
}
