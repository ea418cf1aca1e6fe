import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import {
  HEARTBEAT_MS,
  keepTakeover,
  PROVEN_MS,
  type TakeoverHeartbeatDeps,
  UNEXPECTED_MS,
} from '#shared/engine/watch/takeover-heartbeat.ts';
import { clusterName } from '#shared/eviction/identity.ts';
import { ApiError } from '#shared/kubernetes/http/api-error.ts';
import { durationText } from '#shared/time/duration.ts';
import { recordingLog } from '#test/contracts/recording-log.ts';
import { rules } from '#test/unit/eviction/builders.ts';
import { driveTimers } from '#test/world/driven-timers.ts';
import { FakeCluster } from '#test/world/fake-cluster.ts';

const START = Date.UTC(2026, 0, 1);
const LAPSE_MS = 90_000;
/** By this much the API server's clock is behind: a time of the relay's instead shows. */
const SKEW_MS = -12_000;

function bench(context: TestContext, given: Partial<TakeoverHeartbeatDeps> = {}) {
  const time = driveTimers(context, START);
  const clock = { now: Date.now };
  const api = new FakeCluster(clock);
  api.skewMs = SKEW_MS;
  const log = recordingLog();
  const states: string[] = [];
  const stopping = new AbortController();
  const deps: TakeoverHeartbeatDeps = {
    api,
    policy: () => ({ ...rules.policy, treatAsNoExecute: ['a'] }),
    connectionState: () => 'live',
    holdsLease: () => true,
    whyStalled: async () => undefined,
    prove: async () => ({ asOf: Date.now() }),
    onState: (state) => states.push(state),
    clock,
    log,
    ...given,
  };
  const kept = keepTakeover(clusterName('c1'), deps, stopping.signal);
  context.after(async () => {
    stopping.abort();
    await kept;
  });
  const logged = () => log.lines.map(({ event, fields }) => `${event} ${fields['reason'] ?? ''}`.trim());
  const beats = () => api.takeover?.heartbeat;
  const stateAfter = async (ms: number) => {
    await time.pass(ms);
    return states.at(-1);
  };
  return { time, api, logged, beats, states, stateAfter };
}

/** Returns a bench whose cluster has a takeover from the start. */
function takenOver(context: TestContext, given: Partial<TakeoverHeartbeatDeps> = {}) {
  const made = bench(context, given);
  made.api.putTakeover(['a'], LAPSE_MS);
  return made;
}

/** Lets a test break and repair the admission policy of a fake cluster, and counts the dry runs of nodes. */
function tried(api: FakeCluster) {
  const works = api.keepsOut;
  let tries = 0;
  api.beforeRequest = (verb) => {
    tries += verb === 'try' ? 1 : 0;
  };
  return {
    tries: () => tries,
    breaks: () => {
      api.keepsOut = () => false;
    },
    mended: () => {
      api.keepsOut = works;
    },
  };
}

test('renews a takeover every twenty seconds from its start, and logs it once', async (context) => {
  const { time, api, logged, beats } = bench(context);
  await time.pass(HEARTBEAT_MS);
  assert.deepEqual([logged(), beats()], [[], undefined]);
  api.putTakeover(['a'], LAPSE_MS);
  await time.pass(3 * HEARTBEAT_MS);
  assert.equal(beats(), START + 4 * HEARTBEAT_MS + SKEW_MS);
  assert.equal(api.takeover?.aliveSince, START + 2 * HEARTBEAT_MS + SKEW_MS);
  assert.deepEqual(logged(), ['takeover.heartbeat-renewed']);
});

for (const [name, proofAgeMs, heartbeatAgeMs] of [
  ['before any check', 0, 5_000],
  ['a proof from before the checks', 8_000, 8_000],
] as const) {
  test(`writes the API server’s time as of ${name}`, async (context) => {
    const { time, api, beats } = bench(context, {
      whyStalled: () => new Promise((resolve) => setTimeout(resolve, 5_000, undefined)),
      prove: async () => ({ asOf: Date.now() - proofAgeMs }),
    });
    api.skewMs = -20_000;
    api.putTakeover(['a'], LAPSE_MS);
    await time.pass(HEARTBEAT_MS + 6_000);
    assert.equal(beats(), START + HEARTBEAT_MS + 5_000 - heartbeatAgeMs - 20_000);
  });
}

test('waits for answers that show the API server’s time, and writes no heartbeat before', async (context) => {
  const { time, api, logged, beats } = bench(context);
  let gets = 0;
  api.skewMs = undefined;
  api.putTakeover(['a'], LAPSE_MS);
  await time.pass(HEARTBEAT_MS + 1_000);
  assert.deepEqual(
    [logged(), beats()],
    [["takeover.heartbeat-suspended the API server's clock is not known yet"], undefined],
  );
  api.beforeRequest = (verb) => {
    gets += verb === 'get' ? 1 : 0;
    if (gets === 2) api.skewMs = 0;
  };
  await time.pass(HEARTBEAT_MS + 1_000);
  assert.ok(beats() !== undefined);
  assert.deepEqual(logged().slice(1), ['takeover.heartbeat-renewed']);
});

test('suspends the heartbeat while the clocks differ by more than 30 s, because deadlines are uncertain', async (context) => {
  const { time, api, logged, beats } = takenOver(context);
  api.skewMs = -120_000;
  await time.pass(2 * HEARTBEAT_MS);
  assert.equal(beats(), undefined);
  api.skewMs = 0;
  await time.pass(HEARTBEAT_MS);
  assert.ok(beats() !== undefined);
  assert.deepEqual(logged(), [
    "takeover.heartbeat-suspended the API server's clock is at least 2m behind the clock of the relay",
    'takeover.heartbeat-renewed',
  ]);
});

test('suspends the heartbeat during a fault, logs it once, and continues afterwards', async (context) => {
  let connectionState: 'live' | 'disconnected' = 'live';
  const { time, api, logged, beats, states } = takenOver(context, { connectionState: () => connectionState });
  await time.pass(HEARTBEAT_MS);
  connectionState = 'disconnected';
  const last = START + HEARTBEAT_MS + SKEW_MS;
  await time.pass(6 * HEARTBEAT_MS);
  assert.equal(beats(), last);
  connectionState = 'live';
  await time.pass(HEARTBEAT_MS);
  assert.equal(
    api.takeover?.aliveSince,
    START + 8 * HEARTBEAT_MS + SKEW_MS,
    'the built-in controller was at work meanwhile',
  );
  assert.deepEqual(logged(), [
    'takeover.heartbeat-renewed',
    'takeover.heartbeat-suspended the relay is disconnected from the cluster',
    'takeover.heartbeat-renewed',
  ]);
  assert.deepEqual([...new Set(states)], ['none', 'renewed', 'withheld']);
  assert.equal(states.at(-1), 'renewed');
});

test('suspends the heartbeat when it cannot determine that evictions proceed', async (context) => {
  const { time, logged } = takenOver(context, {
    whyStalled: () => Promise.reject(new Error('the table is away')),
  });
  await time.pass(HEARTBEAT_MS);
  assert.deepEqual(logged(), ['takeover.heartbeat-suspended Error: the table is away']);
});

test('does not renew after the lease expired, also during the checks', async (context) => {
  let holdsLease = true;
  const { time, logged, beats } = takenOver(context, {
    holdsLease: () => holdsLease,
    whyStalled: async () => {
      holdsLease = false;
      return undefined;
    },
  });
  await time.pass(2 * HEARTBEAT_MS);
  assert.equal(beats(), undefined);
  assert.deepEqual(logged(), [
    "takeover.heartbeat-suspended the relay couldn't renew the cluster's lease in time",
  ]);
});

test('makes no checks for a heartbeat that policy forbids', async (context) => {
  let reads = 0;
  const { time } = takenOver(context, {
    policy: () => ({ ...rules.policy, treatAsNoExecute: ['a'], mode: 'observe' }),
    whyStalled: async () => {
      reads += 1;
      return undefined;
    },
  });
  await time.pass(2 * HEARTBEAT_MS);
  assert.equal(reads, 0);
});

test('retries after a rejected write, and ends with a takeover that policy no longer relies on', async (context) => {
  let treatAsNoExecute = ['a'];
  const { time, api, logged, beats } = takenOver(context, {
    policy: () => ({ ...rules.policy, treatAsNoExecute }),
  });
  api.beforeRequest = (verb) => {
    if (verb === 'patch') throw new ApiError('the object has been modified', 409, 'Conflict');
  };
  await time.pass(2 * HEARTBEAT_MS);
  assert.equal(beats(), undefined);
  api.beforeRequest = () => undefined;
  await time.pass(HEARTBEAT_MS);
  api.takeover = undefined;
  treatAsNoExecute = [];
  await time.pass(2 * HEARTBEAT_MS);
  assert.deepEqual(
    logged().map((line) => line.split(' ')[0]),
    ['takeover.heartbeat-suspended', 'takeover.heartbeat-renewed', 'takeover.ended'],
  );
});

test('never renews a takeover that admits a taint in a dry run, and writes the reason to its object', async (context) => {
  const { time, api, logged, beats, states } = bench(context);
  const { breaks, mended } = tried(api);
  breaks();
  api.putTakeover(['a'], LAPSE_MS);
  await time.pass(2 * HEARTBEAT_MS);
  const why =
    "in a dry run, a node kept a:NoExecute: the takeover's admission policy doesn't work in this cluster";
  assert.deepEqual(logged(), [`takeover.heartbeat-suspended ${why}`]);
  assert.deepEqual([api.takeover?.withheld, beats(), states.at(-1)], [why, undefined, 'withheld']);
  mended();
  await time.pass(2 * HEARTBEAT_MS);
  assert.deepEqual([api.takeover?.withheld, states.at(-1)], [undefined, 'renewed']);
  assert.ok(beats() !== undefined);
});

test('verifies the takeover when a relay starts and every ten minutes, and meanwhile repeats one dry run', async (context) => {
  const { time, api } = takenOver(context);
  const { tries } = tried(api);
  await time.pass(HEARTBEAT_MS);
  const proof = tries();
  assert.equal(proof, 3);
  await time.pass(PROVEN_MS - HEARTBEAT_MS);
  const checks = tries() - proof;
  assert.ok(checks >= 10 && checks <= 15, `${checks} dry runs in ten minutes`);
  await time.pass(2 * HEARTBEAT_MS);
  assert.equal(tries(), proof + checks + proof);
});

for (const beatsBefore of [1, 2, 3, 10]) {
  test(`suspends the heartbeat within a minute when its admission policy or binding is deleted after ${beatsBefore} heartbeats`, async (context) => {
    const { api, logged, beats, stateAfter } = takenOver(context);
    const { breaks, mended } = tried(api);
    assert.equal(await stateAfter(beatsBefore * HEARTBEAT_MS + 1), 'renewed');
    breaks();
    const last = beats() ?? 0;
    assert.equal(await stateAfter(60_000), 'withheld');
    assert.match(logged().at(-1) ?? '', /kept a:NoExecute/);
    assert.ok((beats() ?? 0) < last + 2 * HEARTBEAT_MS);
    mended();
    assert.equal(await stateAfter(2 * HEARTBEAT_MS), 'renewed');
  });
}

test('suspends the heartbeat when takeovers/live or its kind is deleted, until policy no longer relies on it', async (context) => {
  let treatAsNoExecute = ['a'];
  const { time, api, logged, stateAfter } = takenOver(context, {
    policy: () => ({ ...rules.policy, treatAsNoExecute }),
  });
  await time.pass(HEARTBEAT_MS);
  api.takeover = undefined;
  assert.equal(await stateAfter(2 * HEARTBEAT_MS), 'withheld');
  assert.match(logged().at(-1) ?? '', /^takeover\.heartbeat-suspended takeovers\/live is gone/);
  api.putTakeover(['a'], LAPSE_MS);
  assert.equal(await stateAfter(2 * HEARTBEAT_MS), 'renewed');
  api.takeover = undefined;
  await time.pass(HEARTBEAT_MS);
  // Other keys do not rely on the takeover.
  treatAsNoExecute = ['b'];
  assert.equal(await stateAfter(HEARTBEAT_MS), 'none');
  assert.equal(logged().at(-1), 'takeover.ended');
});

for (const [what, keys, lapseMs] of [
  ['keys', ['a', 'b'], LAPSE_MS],
  ['lapse', ['a'], 2 * LAPSE_MS],
] as const) {
  test(`verifies the takeover again when its ${what} change`, async (context) => {
    const { api, stateAfter } = takenOver(context, {
      policy: () => ({ ...rules.policy, treatAsNoExecute: ['a', 'b'] }),
    });
    const { breaks } = tried(api);
    assert.equal(await stateAfter(HEARTBEAT_MS), 'renewed');
    breaks();
    api.putTakeover([...keys], lapseMs);
    assert.equal(await stateAfter(2 * HEARTBEAT_MS), 'withheld');
  });
}

test('retries before it suspends the heartbeat, because the API server may apply a new policy late', async (context) => {
  const { time, api, logged } = bench(context);
  const { breaks, mended, tries } = tried(api);
  breaks();
  const count = api.beforeRequest;
  api.beforeRequest = (verb) => {
    count(verb);
    if (tries() === 3) mended();
  };
  api.putTakeover(['a'], LAPSE_MS);
  await time.pass(HEARTBEAT_MS + 5_000);
  assert.deepEqual(logged(), ['takeover.heartbeat-renewed']);
});

test('suspends the heartbeat without the permission to verify the takeover', async (context) => {
  const { time, api, beats, logged } = bench(context);
  api.beforeRequest = (verb) => {
    if (verb === 'try') throw new ApiError('nodes is forbidden', 403, 'Forbidden');
  };
  api.putTakeover(['a'], LAPSE_MS);
  await time.pass(2 * HEARTBEAT_MS);
  assert.equal(beats(), undefined);
  assert.deepEqual(logged(), [
    "takeover.heartbeat-suspended the takeover couldn't be verified (taintward takeover apply grants the permission): nodes is forbidden",
  ]);
});

test('logs each new reason, but not each delay of an overdue eviction', async (context) => {
  let overdueMs = 0;
  let connectionState: 'syncing' | 'live' = 'syncing';
  const { time, api, logged } = takenOver(context, {
    connectionState: () => connectionState,
    whyStalled: async () => (overdueMs ? `an eviction is overdue by ${durationText(overdueMs)}` : undefined),
  });
  await time.pass(HEARTBEAT_MS);
  connectionState = 'live';
  for (overdueMs = 61_000; overdueMs < 200_000; overdueMs += HEARTBEAT_MS) await time.pass(HEARTBEAT_MS);
  assert.deepEqual(logged(), [
    "takeover.heartbeat-suspended the relay hasn't listed the whole cluster yet",
    'takeover.heartbeat-suspended an eviction is overdue by 1m1s',
  ]);
  assert.equal(api.takeover?.withheld, 'an eviction is overdue by 1m1s');
});

test('searches every five minutes for a takeover while the policy names no key, and then every twenty seconds', async (context) => {
  let treatAsNoExecute: readonly string[] = [];
  const { time, api, logged } = bench(context, { policy: () => ({ ...rules.policy, treatAsNoExecute }) });
  const { mock } = context.mock.method(api, 'getTakeover');
  await time.pass(2 * UNEXPECTED_MS);
  assert.equal(mock.callCount(), 2);
  treatAsNoExecute = ['a'];
  api.putTakeover(['a'], LAPSE_MS);
  await time.pass(HEARTBEAT_MS);
  treatAsNoExecute = [];
  await time.pass(HEARTBEAT_MS);
  assert.deepEqual(logged(), [
    'takeover.heartbeat-renewed',
    'takeover.heartbeat-suspended policy does not name a in treatAsNoExecute',
  ]);
});

test('writes no reason while another relay renews the takeover', async (context) => {
  const { time, api } = takenOver(context, { policy: () => ({ ...rules.policy, treatAsNoExecute: ['b'] }) });
  const renew = async () => {
    if (api.takeover) await api.renewTakeover(api.takeover, Date.now() + SKEW_MS);
    await time.pass(HEARTBEAT_MS);
  };
  for (let beats = 0; beats < 5; beats++) await renew();
  assert.equal(api.takeover?.withheld, undefined);
  await time.pass(2 * HEARTBEAT_MS);
  assert.equal(api.takeover?.withheld, 'policy does not name a in treatAsNoExecute');
});

const unavailable = async () => {
  throw new ApiError('unavailable', 503);
};

test('suspends nothing when a cluster that is not taken over does not answer', async (context) => {
  const { api, logged, stateAfter } = bench(context);
  context.mock.method(api, 'getTakeover', unavailable);
  assert.equal(await stateAfter(2 * HEARTBEAT_MS), 'none');
  assert.deepEqual(logged(), []);
});

test('knows that policy relies on a takeover that was deleted while the cluster did not answer', async (context) => {
  const { api, logged, stateAfter } = takenOver(context);
  assert.equal(await stateAfter(1.5 * HEARTBEAT_MS), 'renewed');
  const { mock } = context.mock.method(api, 'getTakeover', unavailable);
  assert.equal(await stateAfter(HEARTBEAT_MS), 'withheld');
  mock.mockImplementation(async () => undefined);
  assert.equal(await stateAfter(HEARTBEAT_MS), 'withheld');
  assert.match(logged().at(-1) ?? '', /takeovers\/live is gone/);
});

test('logs why it suspends the heartbeat, although the reason cannot be written', async (context) => {
  const { api, logged, stateAfter } = takenOver(context, { whyStalled: async () => 'a pod is overdue' });
  const writing = context.mock.method(api, 'withholdTakeover', unavailable);
  assert.equal(await stateAfter(3 * HEARTBEAT_MS), 'withheld');
  assert.ok(writing.mock.callCount() > 0);
  assert.deepEqual(logged(), ['takeover.heartbeat-suspended a pod is overdue']);
});
