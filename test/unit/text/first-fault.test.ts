import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as z from 'zod';
import { firstFault } from '#shared/text/read-as.ts';

const schema = z.strictObject({ node: z.string(), pods: z.array(z.object({ uid: z.string() })) });

function faultOf(given: unknown) {
  const { error } = schema.safeParse(given);
  assert.ok(error);
  return firstFault(error);
}

test('returns the field and description of the first fault', () => {
  assert.deepEqual(faultOf({ node: 'n1', pods: [{ uid: 7 }] }), {
    field: 'pods.0.uid',
    fault: 'Invalid input: expected string, received number',
  });
  assert.deepEqual(faultOf({ pods: [] }), { field: 'node', fault: 'is missing' });
  assert.deepEqual(faultOf([]), { field: '', fault: 'Invalid input: expected object, received array' });
});

test('reports text that is not a number', () => {
  const { error } = z.object({ limit: z.coerce.number() }).safeParse({ limit: 'x' });
  assert.ok(error);
  assert.deepEqual(firstFault(error), { field: 'limit', fault: 'is no number' });
});

test('names an unknown field on one line, whatever its name', () => {
  const right = { node: 'n1', pods: [] };
  assert.deepEqual(faultOf({ ...right, extra: 1, more: 2 }), {
    field: '',
    fault: 'has no field extra: leave it out',
  });
  const { fault } = faultOf({ ...right, [`\n\u0000${'x'.repeat(100_000)}`]: 1 });
  assert.equal(fault, `has no field \\u000a\\u0000${'x'.repeat(98)}…: leave it out`);
});
