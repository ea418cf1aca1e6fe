import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import * as z from 'zod';
import {
  deltaQueueVariables,
  EnvironmentError,
  matchingVariables,
  readEnvironment,
  relayEnvironment,
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

test("reads a relay's clusters, address, and capacity, with or without spaces after commas", () => {
  const required = { ...GOOD, METRIC_NAMESPACE: 'Taintward' };
  const read = (given: Readonly<Record<string, string>>) => {
    const found = readEnvironment(relayEnvironment, { ...required, ...given });
    return [found.CLUSTERS, found.PROBE_HOST, found.PROBE_PORT, found.NODE_CAPACITY];
  };
  assert.deepEqual(read({}), [undefined, '0.0.0.0', 8080, 20_480]);
  for (const CLUSTERS of ['edge-1,prod-*', 'edge-1, prod-*', ' edge-1 ,prod-* ']) {
    assert.deepEqual(read({ CLUSTERS, PROBE_HOST: '::1', PROBE_PORT: '0', NODE_CAPACITY: '40' }), [
      ['edge-1', 'prod-*'],
      '::1',
      0,
      40,
    ]);
  }
  for (const [name, values] of Object.entries({
    PROBE_PORT: ['x', '-1', '65536', '1.5'],
    NODE_CAPACITY: ['', '0', 'x'],
  }))
    for (const value of values)
      assert.throws(() => read({ [name]: value }), EnvironmentError, `${name}=${value}`);
});
