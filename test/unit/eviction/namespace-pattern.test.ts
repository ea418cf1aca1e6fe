import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { matchesPattern } from '#shared/eviction/namespace-pattern.ts';
import { storedPolicy } from '#shared/eviction/policy.ts';
import { parsePolicyDocument, policyText } from '#shared/state/policy-document.ts';

describe('a pattern of namespaces', () => {
  test('matches as the regular expression with .* for each * does', () => {
    const letters = fc.string({ unit: fc.constantFrom('a', 'b', '-'), maxLength: 8 });
    const pattern = fc.array(letters, { minLength: 1, maxLength: 4 }).map((parts) => parts.join('*'));
    fc.assert(
      fc.property(pattern, letters, (written, name) => {
        const expression = new RegExp(`^${written.replaceAll('*', '.*')}$`);
        assert.equal(matchesPattern(written, name), expression.test(name));
      }),
      { numRuns: 2_000 },
    );
  });

  test('is stored apart from names, and is written with them again', () => {
    const policy = parsePolicyDocument('mode: enforce\nexclude: [{ namespaces: [shop, kube-*] }]');
    assert.deepEqual(policy.exclude, [{ namespaces: ['shop'], namespacePatterns: ['kube-*'] }]);
    assert.deepEqual(storedPolicy.parse(JSON.parse(JSON.stringify(policy))), policy);
    assert.deepEqual(parsePolicyDocument(policyText(policy)), policy);
  });

  test('that an earlier release stored as a name still matches nothing', () => {
    const exclude = [{ namespaces: ['kube-*'] }];
    const policy = { ...parsePolicyDocument('mode: enforce'), exclude };
    assert.deepEqual(storedPolicy.parse(policy).exclude, exclude);
  });
});
