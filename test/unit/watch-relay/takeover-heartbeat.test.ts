import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import {
  HEARTBEAT_MS,
  keepTakeover,
  type TakeoverHeartbeatDeps,
} from '#functions/watch-relay/takeover-heartbeat.ts';
import { clusterName } from '#shared/eviction/identity.ts';
import { ApiError } from '#shared/kubernetes/api-error.ts';
import { recordingLog } from '#test/contracts/recording-log.ts';
import { rules } from '#test/unit/eviction/builders.ts';
import { driveTimers } from '#test/world/driven-timers.ts';
import { FakeCluster } from '#test/world/fake-cluster.ts';

const START = Date.UTC(2026, 0, 1);
const LAPSE_MS = 90_000;

function bench(context: TestContext, given: Partial<TakeoverHeartbeatDeps> = {}) {
  const time = driveTimers(context, START);
  const clock = { now: Date.now };
  const api = new FakeCluster(clock);
  api.skewMs = 0;
  const log = recordingLog();
  const states: string[] = [];
  const stopping = new AbortController();
  const deps: TakeoverHeartbeatDeps = {
    api,
    policy: () => ({ ...rules.policy, virtualKeys: ['a'] }),
    hearing: () => 'live',
    overdueMs: async () => 0,
    told: (state) => states.push(state),
    clock,
    log,
    ...given,
  };
  const kept = keepTakeover(clusterName('c1'), deps, stopping.signal);
  context.after(async () => {
    stopping.abort();
    await kept;
  });
  const told = () => log.lines.map(({ event, fields }) => `${event} ${fields['reason'] ?? ''}`.trim());
  const beats = () => api.takeover?.heartbeat;
  return { time, api, told, beats, states };
}

test('a takeover is renewed every twenty seconds from its first moment, and said once', async (context) => {
  const { time, api, told, beats } = bench(context);
  await time.pass(HEARTBEAT_MS);
  assert.deepEqual([told(), beats()], [[], undefined]);
  api.putTakeover(['a'], LAPSE_MS);
  await time.pass(3 * HEARTBEAT_MS);
  assert.equal(beats(), START + 4 * HEARTBEAT_MS);
  assert.equal(api.takeover?.aliveSince, START + 2 * HEARTBEAT_MS);
  assert.deepEqual(told(), ['takeover.renewed']);
});

test('what it says is the API server’s time, as of before anything was looked at', async (context) => {
  const { time, api, beats } = bench(context, {
    overdueMs: () => new Promise((resolve) => setTimeout(resolve, 5_000, 0)),
  });
  api.skewMs = -120_000;
  api.putTakeover(['a'], LAPSE_MS);
  await time.pass(HEARTBEAT_MS + 6_000);
  assert.equal(beats(), START + HEARTBEAT_MS - 120_000);
});

test('it waits for some answers to know the API server’s time, and says nothing without', async (context) => {
  const { time, api, told, beats } = bench(context);
  let gets = 0;
  api.skewMs = undefined;
  api.putTakeover(['a'], LAPSE_MS);
  await time.pass(HEARTBEAT_MS + 1_000);
  assert.deepEqual(
    [told(), beats()],
    [['takeover.withheld it is not known yet what time the API server has'], undefined],
  );
  api.beforeRequest = (verb) => {
    gets += verb === 'get' ? 1 : 0;
    if (gets === 2) api.skewMs = 0;
  };
  await time.pass(HEARTBEAT_MS + 1_000);
  assert.ok(beats() !== undefined);
  assert.deepEqual(told().slice(1), ['takeover.renewed']);
});

test('it is withheld while something is amiss, which is said once, and goes on when that is over', async (context) => {
  let hearing: 'live' | 'deaf' = 'live';
  const { time, api, told, beats, states } = bench(context, { hearing: () => hearing });
  api.putTakeover(['a'], LAPSE_MS);
  await time.pass(HEARTBEAT_MS);
  hearing = 'deaf';
  const last = START + HEARTBEAT_MS;
  await time.pass(6 * HEARTBEAT_MS);
  assert.equal(beats(), last);
  hearing = 'live';
  await time.pass(HEARTBEAT_MS);
  assert.equal(
    api.takeover?.aliveSince,
    START + 8 * HEARTBEAT_MS,
    'the built-in controller was at work meanwhile',
  );
  assert.deepEqual(told(), [
    'takeover.renewed',
    'takeover.withheld the cluster is not heard',
    'takeover.renewed',
  ]);
  assert.deepEqual([...new Set(states)], ['none', 'renewed', 'withheld']);
  assert.equal(states.at(-1), 'renewed');
});

test('it is withheld when it is not known what is overdue', async (context) => {
  const { time, api, told } = bench(context, {
    overdueMs: () => Promise.reject(new Error('the table is away')),
  });
  api.putTakeover(['a'], LAPSE_MS);
  await time.pass(HEARTBEAT_MS);
  assert.deepEqual(told(), ['takeover.withheld Error: the table is away']);
});

test('a refusal is met with the next try, and the end of a takeover with silence', async (context) => {
  const { time, api, told, beats } = bench(context);
  api.putTakeover(['a'], LAPSE_MS);
  api.beforeRequest = (verb) => {
    if (verb === 'patch') throw new ApiError('the object has been modified', 409, 'Conflict');
  };
  await time.pass(2 * HEARTBEAT_MS);
  assert.equal(beats(), undefined);
  api.beforeRequest = () => undefined;
  await time.pass(HEARTBEAT_MS);
  api.takeover = undefined;
  await time.pass(2 * HEARTBEAT_MS);
  assert.deepEqual(
    told().map((line) => line.split(' ')[0]),
    ['takeover.withheld', 'takeover.renewed', 'takeover.ended'],
  );
});
