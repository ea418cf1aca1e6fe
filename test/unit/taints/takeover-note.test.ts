import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { ownSeconds, TAKEOVER_ANNOTATION } from '#shared/taints/takeover-note.ts';
import * as arbitrary from './arbitraries.ts';

const NOTE = 'node.kubernetes.io/not-ready=300+3600,example.com/gpu=0+3600';

test('returns the own seconds of the tolerations in the annotation', () => {
  assert.equal(ownSeconds(NOTE, 'node.kubernetes.io/not-ready', 3900n), 300n);
  assert.equal(ownSeconds(NOTE, 'example.com/gpu', 3600n), 0n);
  assert.equal(ownSeconds(NOTE, 'node.kubernetes.io/unreachable', 3900n), undefined);
  assert.equal(ownSeconds(NOTE, 'example', 3600n), undefined);
});

test('ignores the annotation where the toleration has other seconds', () => {
  for (const seconds of [300n, 3600n, 3899n, 3901n, -3900n])
    assert.equal(ownSeconds(NOTE, 'node.kubernetes.io/not-ready', seconds), undefined);
});

test('ignores a malformed annotation', () => {
  const forged = [
    'a=5',
    'a=5+0',
    '!a=5+5',
    'a=5+5!',
    'a=-5+15',
    'a=05+5 ',
    'a= 5+5',
    'a=5+05',
    'b=5+5',
    '',
    ',',
    'a=5+5,'.repeat(200),
  ];
  for (const note of forged) assert.equal(ownSeconds(note, 'a', 10n), undefined, note);
});

test('ignores an annotation of 1000 characters, and reads an annotation of 999', () => {
  const longest = (length: number) => `a=5+5,${'b'.repeat(length - 'a=5+5,'.length)}`;
  assert.equal(ownSeconds(longest(999), 'a', 10n), 5n);
  assert.equal(ownSeconds(longest(1000), 'a', 10n), undefined);
});

test('keeps the annotation key that releases and pods share', () => {
  assert.equal(TAKEOVER_ANNOTATION, 'taintward.dev/takeover');
});

test('never lengthens a toleration', () => {
  const entry = fc
    .tuple(fc.constantFrom('a', 'b'), fc.bigInt(), fc.bigInt())
    .map(([k, o, f]) => `${k}=${o}+${f}`);
  const note = fc.oneof(
    fc.string(),
    fc.array(fc.oneof(entry, fc.string())).map((parts) => parts.join(',')),
  );
  fc.assert(
    fc.property(note, fc.constantFrom('a', 'b'), arbitrary.seconds, (text, key, seconds) => {
      const own = ownSeconds(text, key, seconds);
      assert.ok(own === undefined || (own >= 0n && own < seconds));
    }),
  );
});
