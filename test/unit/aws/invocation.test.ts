import assert from 'node:assert/strict';
import { test } from 'node:test';
import middy from '@middy/core';
import type { Context } from 'aws-lambda';
import { invocation } from '#shared/aws/consume.ts';

const CONTEXT = { getRemainingTimeInMillis: () => 30_000 } as Context;

for (const [outcome, handle, settled] of [
  ['succeeds', async () => 'done', ['done']],
  ['fails', async () => assert.fail('refused'), ['refused']],
] as const) {
  test(`flushes once, and before an invocation that ${outcome} ends`, async () => {
    const events: string[] = [];
    const handler = middy<object, string>()
      .use(
        invocation({
          metrics: { flush: () => void events.push('metrics') },
          notices: {
            async flush() {
              await undefined;
              events.push('notices');
            },
          },
        }),
      )
      .handler(handle);
    await handler({}, CONTEXT).then(
      (result) => events.push(result),
      ({ message }) => events.push(message),
    );
    assert.deepEqual(events, ['metrics', 'notices', ...settled]);
  });
}
