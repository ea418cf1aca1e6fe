import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { beginRequested, Evictions } from '#functions/service/evictions.ts';
import { encodeRetry } from '#shared/aws/due-message.ts';
import { RejectedMessageError } from '#shared/aws/rejected-message.ts';
import { clusterName, nodeName, podUid } from '#shared/eviction/identity.ts';
import type { ServiceState } from '#shared/state/service-state.ts';
import { recordingLog } from '#test/contracts/recording-log.ts';
import { drivenClock as clock, driveTimers } from '#test/world/driven-timers.ts';

const REF = { cluster: clusterName('c1'), node: nodeName('n1') };
const ONE_BACKOFF_MS = 1_000;
const uids = (...names: readonly string[]) => names.map(podUid);

/** Evictions of one node. Each call to the store waits until the test ends it. */
function evictionsOf(context: TestContext) {
  const time = driveTimers(context);
  const calls: { readonly what: string; end(error?: Error): Promise<void> }[] = [];
  const stopped = Promise.withResolvers<undefined>();
  const begin = (what: string) => {
    const { promise, resolve, reject } = Promise.withResolvers<undefined>();
    const end = (error?: Error) => {
      if (error) reject(error);
      else resolve(undefined);
      return time.settle();
    };
    calls.push({ what, end });
    return Promise.race([promise, stopped.promise]);
  };
  const evictions = new Evictions({
    process: (_, failedBefore) => begin(failedBefore ? 'look again' : 'look'),
    tryAgain: (_, pods) => begin(`try ${pods.join()}`),
    clock,
    log: recordingLog(),
  });
  context.after(() => {
    stopped.resolve(undefined);
    return evictions.stop();
  });
  const next = async (what: string) => {
    await time.settle();
    const call = calls.shift();
    assert.equal(call?.what, what);
    return call ?? assert.fail();
  };
  const none = async () => {
    await time.settle();
    assert.deepEqual(calls, []);
  };
  const retry = async (...pods: readonly string[]) => {
    evictions.retry(REF, uids(...pods));
    await time.settle();
  };
  return { evictions, time, next, none, retry };
}

const AWAY = new Error('the store is away');

describe('a request to retry evictions', () => {
  test('is performed once, with the pods of the requests that arrived before it began', async (context) => {
    const { evictions, next, none, retry } = evictionsOf(context);
    evictions.retry(REF, uids('a'));
    await retry('b');
    await (await next('try a,b')).end();
    await (await next('look')).end();
    await retry();
    await (await next('try ')).end();
    await (await next('look')).end();
    await none();
  });

  for (const [outcome, error] of Object.entries({ succeeds: undefined, fails: AWAY })) {
    for (const under of ['an earlier request', 'a look']) {
      test(`is performed immediately after ${under} that ${outcome}`, async (context) => {
        const { evictions, next, none, retry } = evictionsOf(context);
        if (under === 'a look') await evictions.arm(REF, [0]);
        else evictions.retry(REF, uids('a'));
        const first = await next(under === 'a look' ? 'look' : 'try a');
        await retry('b');
        await none();
        await first.end(error);
        if (under === 'an earlier request' && !error) await (await next('look')).end();
        await (await next(under === 'a look' ? 'try b' : 'try a,b')).end();
        await (await next(error ? 'look again' : 'look')).end();
        await none();
      });
    }
  }

  test('comes again by itself until it could be performed', async (context) => {
    const { time, next, none, retry } = evictionsOf(context);
    await retry('a');
    for (let failures = 0; failures < 3; failures++) {
      await (await next('try a')).end(AWAY);
      await none();
      await time.pass(ONE_BACKOFF_MS * 2 ** failures);
    }
    await (await next('try a')).end();
    await (await next('look again')).end();
    await none();
  });

  test('is performed although others with it are unreadable', async (context) => {
    const { evictions, next } = evictionsOf(context);
    const body = encodeRetry({ ...REF, pods: uids('a') });
    const requests = async () => [{ body: 'no message' }, { body }];
    await assert.rejects(
      beginRequested({ requests } as unknown as ServiceState, evictions),
      RejectedMessageError,
    );
    await (await next('try a')).end();
    await (await next('look')).end();
  });
});
