import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Interner } from '#shared/kubernetes/interning.ts';

test('the same key gives the same object, made once', () => {
  const interner = new Interner<object>(10);
  const first = interner.get('a', () => ({}));
  assert.equal(
    interner.get('a', () => assert.fail('made twice')),
    first,
  );
  assert.notEqual(
    interner.get('b', () => ({})),
    first,
  );
});

test('it never holds more than its limit', () => {
  const interner = new Interner<string>(2);
  let made = 0;
  const get = (key: string) =>
    interner.get(key, () => {
      made += 1;
      return key;
    });
  for (const key of ['a', 'b', 'c', 'c', 'a']) assert.equal(get(key), key);
  assert.equal(made, 4);
});
