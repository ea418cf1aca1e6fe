import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { Evictions } from '#functions/service/evictions.ts';
import { clusterName, nodeName, podUid } from '#shared/eviction/identity.ts';
import { systemClock } from '#shared/time/clock.ts';
import { recordingLog } from '#test/contracts/recording-log.ts';
import { driveTimers } from '#test/world/driven-timers.ts';

const REF = { cluster: clusterName('c1'), node: nodeName('n1') };
const UIDS = [podUid('u1'), podUid('u2')] as const;

/** Evictions whose looks and retries are recorded. */
function bench(context: TestContext) {
  const time = driveTimers(context);
  const done: string[] = [];
  const evictions = new Evictions({
    process: async ({ node }) => {
      done.push(`looked at ${node}`);
      return undefined;
    },
    tryAgain: async (_ref, pods) => {
      done.push(`retried ${pods.join()}`);
    },
    clock: systemClock,
    log: recordingLog(),
  });
  return { time, evictions, done };
}

test('evictions handle a stored node when it is due, until they stop', async (context) => {
  const { time, evictions, done } = bench(context);
  const store = {
    async *upcoming() {
      yield { ref: REF, dueAt: 1_000 };
      yield { ref: REF, dueAt: 3_000 };
    },
  };
  await evictions.rearm(store);
  await time.pass(900);
  assert.deepEqual(done, []);
  await time.pass(200);
  assert.deepEqual(done, ['looked at n1']);
  await evictions.stop();
  await time.pass(5_000);
  assert.deepEqual(done, ['looked at n1']);
});

test('evictions retry pods once, however often they are requested until then', async (context) => {
  const { time, evictions, done } = bench(context);
  for (const uid of UIDS) evictions.retry(REF, [uid]);
  await time.settle();
  await evictions.arm(REF, [1_000]);
  await time.pass(2_000);
  assert.deepEqual(done, ['retried u1,u2', 'looked at n1', 'looked at n1']);
});
