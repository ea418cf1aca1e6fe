import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { storedPolicy } from '#shared/eviction/policy.ts';
import { matchesPattern } from '#shared/eviction/selectors.ts';
import { parsePolicyDocument, policyText } from '#shared/state/policy-document.ts';

describe('a namespace pattern', () => {
  test('matches as a regular expression with .* for each *', () => {
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

  test('is stored separately from names, and printed together with them', () => {
    const policy = parsePolicyDocument('mode: enforce\nexclude: [{ namespaces: [shop, kube-*] }]');
    assert.deepEqual(policy.exclude, [{ namespaces: ['shop'], namespacePatterns: ['kube-*'] }]);
    assert.deepEqual(storedPolicy.parse(JSON.parse(JSON.stringify(policy))), policy);
    assert.deepEqual(parsePolicyDocument(policyText(policy)), policy);
  });

  test('matches nothing when an earlier release stored it as a name', () => {
    const exclude = [{ namespaces: ['kube-*'] }];
    const policy = { ...parsePolicyDocument('mode: enforce'), exclude };
    assert.deepEqual(storedPolicy.parse(policy).exclude, exclude);
  });
});
