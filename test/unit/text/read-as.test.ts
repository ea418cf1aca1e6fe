import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as z from 'zod';
import { firstFault } from '#shared/text/first-fault.ts';
import { readAs } from '#shared/text/read-as.ts';

const schema = z.strictObject({ cluster: z.string().min(1) });

test('what has a length that cannot be compared is refused as all else that is no text', () => {
  const { error } = readAs(schema, { cluster: { length: { toString: 1 } } });
  assert.ok(error);
  assert.deepEqual(firstFault(error), { field: '', fault: 'has a part of a form that nothing has' });
});

test('all else is read, or refused, as the schema does', () => {
  assert.deepEqual(readAs(schema, { cluster: 'prod' }).data, { cluster: 'prod' });
  assert.deepEqual(readAs(schema, { cluster: 7 }).error?.issues[0]?.path, ['cluster']);
});

test('a mistake of ours in a schema stays one', () => {
  const broken = z.string().transform((): string => {
    throw new RangeError('ours');
  });
  assert.throws(() => readAs(broken, 'x'), RangeError);
});
