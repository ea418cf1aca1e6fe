import assert from 'node:assert/strict';
import { test } from 'node:test';
import middy from '@middy/core';
import type { Context } from 'aws-lambda';
import { flushing } from '#shared/aws/lambda/middlewares.ts';

const CONTEXT = { getRemainingTimeInMillis: () => 30_000 } as Context;

for (const [outcome, handle, settled] of [
  ['succeeds', async () => 'done', ['done']],
  ['fails', async () => assert.fail('refused'), ['refused']],
] as const) {
  test(`flushes once, and before an invocation that ${outcome} ends`, async () => {
    const events: string[] = [];
    const handler = middy<object, string>()
      .use(
        flushing(async () => {
          await undefined;
          events.push('flushed');
        }),
      )
      .handler(handle);
    await handler({}, CONTEXT).then(
      (result) => events.push(result),
      ({ message }) => events.push(message),
    );
    assert.deepEqual(events, ['flushed', ...settled]);
  });
}
