import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as z from 'zod';
import { firstFault, readAs } from '#shared/text/read-as.ts';

const schema = z.strictObject({ cluster: z.string().min(1) });

test('rejects a value with an invalid length like other non-text', () => {
  const { error } = readAs(schema, { cluster: { length: { toString: 1 } } });
  assert.ok(error);
  assert.deepEqual(firstFault(error), { field: '', fault: 'has a part of a form that nothing has' });
});

test('returns the result of the schema otherwise', () => {
  assert.deepEqual(readAs(schema, { cluster: 'prod' }).data, { cluster: 'prod' });
  assert.deepEqual(readAs(schema, { cluster: 7 }).error?.issues[0]?.path, ['cluster']);
});

test('passes on a programming error in a schema', () => {
  const broken = z.string().transform((): string => {
    throw new RangeError('ours');
  });
  assert.throws(() => readAs(broken, 'x'), RangeError);
});
