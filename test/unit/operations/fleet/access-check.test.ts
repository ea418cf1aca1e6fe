import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { InvokeCommand, LambdaClient } from '@aws-sdk/client-lambda';
import { clusterName } from '#shared/eviction/identity.ts';
import { askEvict } from '#shared/operations/fleet/access-check.ts';

const CHECKED = {
  name: clusterName('prod'),
  access: { kind: 'eks', clusterName: 'production', region: 'eu-west-1' },
  namespaces: ['team-a'],
} as const;

/** A Lambda client that gives every invocation this answer. */
function lambda(answer: () => { readonly payload: string; readonly FunctionError?: string }) {
  const calls: InvokeCommand['input'][] = [];
  const send = async ({ input }: InvokeCommand) => {
    calls.push(input);
    const { payload, ...more } = answer();
    return { Payload: Buffer.from(payload), ...more };
  };
  return { client: { send } as unknown as LambdaClient, calls };
}

test('invokes evict by name with the new registration and passes on its answer', async () => {
  for (const answer of [
    { reached: true, missing: ['delete pods'] },
    { reached: false, reason: 'It is not reached.' },
  ] as const) {
    const { client, calls } = lambda(() => ({ payload: JSON.stringify(answer) }));
    assert.deepEqual(
      await askEvict(client, 'tw-evict', { ...CHECKED, addedAt: 1 } as typeof CHECKED),
      answer,
    );
    assert.deepEqual(
      calls.map(({ FunctionName, Payload }) => [FunctionName, JSON.parse(String(Payload))]),
      [['tw-evict', { checkAccess: CHECKED }]],
    );
  }
});

test('reports an older evict that mistakes the request for messages', async () => {
  for (const answer of [
    { payload: '{"errorMessage":"event.Records is not iterable"}', FunctionError: 'Unhandled' },
    { payload: '{"batchItemFailures":[]}' },
    { payload: 'null' },
    { payload: '' },
  ]) {
    await assert.rejects(askEvict(lambda(() => answer).client, 'tw-evict', CHECKED), {
      name: 'FleetError',
      message:
        /^Function tw-evict gave an unknown response about cluster prod .*\. Deploy the release of this/,
    });
  }
});

test('names the missing permission to invoke evict', async () => {
  const { client } = lambda(() => {
    throw new Error('not authorized');
  });
  await assert.rejects(askEvict(client, 'tw-evict', CHECKED), {
    name: 'FleetError',
    message: /^Function tw-evict could not check .*\(not authorized\).* lambda:InvokeFunction\.$/,
  });
});
