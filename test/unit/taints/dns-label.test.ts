import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { dnsLabelFaults, dnsSubdomainFaults } from '#shared/taints/validation.ts';

const TOO_LONG = 'must have at most 63 characters: shorten it';
const NOT_ALLOWED =
  "has a character that is not allowed: use lower-case letters, digits and '-', with a letter or digit at both ends";

describe('a namespace name', () => {
  for (const name of ['a', '7', 'kube-system', 'a--b', '1-2', 'x'.repeat(63)]) {
    test(`accepts ${name}`, () => assert.deepEqual(dnsLabelFaults(name), []));
  }

  for (const name of ['', '-', '-a', 'a-', 'A', 'aB', 'Ab', 'a.b', 'kube-*', 'a b', 'é', 'a\n']) {
    test(`rejects ${JSON.stringify(name)}`, () => assert.deepEqual(dnsLabelFaults(name), [NOT_ALLOWED]));
  }

  test('has at most 63 characters', () => assert.deepEqual(dnsLabelFaults('x'.repeat(64)), [TOO_LONG]));

  test('may be parts with dots between them in a subdomain', () => {
    assert.deepEqual([dnsSubdomainFaults('a.b'), dnsSubdomainFaults('a..b').length], [[], 1]);
  });

  test('reports both faults of a name', () =>
    assert.deepEqual(dnsLabelFaults('X'.repeat(64)), [TOO_LONG, NOT_ALLOWED]));
});

test('a DNS subdomain has parts, and at most 253 characters', () => {
  assert.deepEqual(dnsSubdomainFaults('gold.example.com'), []);
  assert.match(
    String(dnsSubdomainFaults('gold..com')),
    /^has a character that is not allowed: .* of each part$/,
  );
  assert.match(String(dnsSubdomainFaults('x'.repeat(254))), /^must have at most 253 characters/);
});
