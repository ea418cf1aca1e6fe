import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
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

  test('is printed as it was written', () => {
    const policy = parsePolicyDocument('mode: enforce\nexclude: [{ namespaces: [shop, kube-*] }]');
    assert.deepEqual(parsePolicyDocument(policyText(policy)), policy);
  });
});
