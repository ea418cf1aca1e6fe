import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import * as z from 'zod';
import {
  deltaQueueVariables,
  EnvironmentError,
  matchingVariables,
  readEnvironment,
  tableVariables,
} from '#shared/aws/environment.ts';

const schema = z.object({ ...tableVariables, ...deltaQueueVariables, ...matchingVariables });

const GOOD = {
  TABLE_NAME: 'taintward',
  NODE_DELTAS_URL: 'https://sqs.eu-west-1.amazonaws.com/123456789012/node-deltas.fifo',
  POD_DELTAS_URL: 'http://localhost:4566/000000000000/pod-deltas.fifo',
  COMPARISON_OPERATORS: 'true',
};

const refusal = (change: Readonly<Record<string, string | undefined>>): string => {
  try {
    readEnvironment(schema, { ...GOOD, ...change });
  } catch (error) {
    assert.ok(error instanceof EnvironmentError);
    return error.message;
  }
  assert.fail('the environment was accepted');
};

describe('readEnvironment', () => {
  test('returns the variables of the schema, and ignores other variables', () => {
    assert.deepEqual(readEnvironment(schema, { ...GOOD, PATH: '/bin' }), {
      ...GOOD,
      COMPARISON_OPERATORS: true,
    });
  });

  test('names a missing variable', () => {
    assert.match(refusal({ TABLE_NAME: undefined }), /^The environment variable TABLE_NAME is not set: /);
  });

  test('names an invalid variable with the fault, and without the value', () => {
    assert.match(refusal({ TABLE_NAME: '' }), /variable TABLE_NAME cannot be used \(is empty\): /);
    const message = refusal({ COMPARISON_OPERATORS: 'sesame' });
    assert.match(message, /COMPARISON_OPERATORS cannot be used \(must be true or false\): /);
    assert.doesNotMatch(message, /sesame/);
    assert.match(
      refusal({ NODE_DELTAS_URL: 'node-deltas' }),
      /NODE_DELTAS_URL cannot be used \(Invalid URL\)/,
    );
  });
});
