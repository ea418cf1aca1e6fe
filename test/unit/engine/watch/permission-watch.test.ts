import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { ClusterFaults } from '#shared/engine/watch/cluster-faults.ts';
import { watchPermissions } from '#shared/engine/watch/permission-watch.ts';
import { ApiError } from '#shared/kubernetes/http/api-error.ts';
import type { Permission } from '#shared/kubernetes/http/call.ts';
import { drivenClock, driveTimers } from '#test/world/driven-timers.ts';

const SECOND = 1000;

/** Starts the checks of a cluster that answers each. A test sets what it lacks, and the error of its answers. */
function bench(context: TestContext) {
  const time = driveTimers(context);
  const stopping = new AbortController();
  context.after(() => stopping.abort());
  const faults = new ClusterFaults(drivenClock);
  const given = {
    lacks: undefined as Permission['resource'] | undefined,
    reviewError: undefined as Error | undefined,
    pingError: undefined as Error | undefined,
    answer: Promise.resolve(),
    reviewedAt: [] as number[],
    pings: 0,
    answers: 0,
    ended: false,
  };
  const api = {
    async lacking<R extends Permission>(rights: readonly R[]): Promise<readonly R[]> {
      given.reviewedAt.push(Date.now() / SECOND);
      await given.answer;
      if (given.reviewError) throw given.reviewError;
      return rights.filter(({ resource }) => resource === given.lacks);
    },
    async ping(): Promise<void> {
      given.pings += 1;
      if (given.pingError) throw given.pingError;
    },
  };
  void watchPermissions(api, faults, stopping.signal, () => {
    given.answers += 1;
  }).then(() => {
    given.ended = true;
  });
  const faultsAfter = async (ms: number) => {
    await time.pass(ms);
    return faults.list.map(({ type, resource, status }) => [type, resource, status]);
  };
  return { given, time, faults, stopping, faultsAfter };
}

test('pings every five seconds, and reviews permissions with every fifth ping', async (context) => {
  const { given, time, faults } = bench(context);
  await time.pass(59 * SECOND);
  assert.deepEqual([given.pings, given.reviewedAt], [12, [0, 25, 50]]);
  assert.deepEqual([faults.list, given.answers], [[], 0]);
});

for (const [resource, fault, lack] of [
  ['nodes', 'watch-failing', 'watch nodes'],
  ['pods', 'list-failing', 'list pods'],
] as const)
  test(`reports a missing permission of ${resource}, and reviews with each ping until it is granted`, async (context) => {
    const { given, faults, faultsAfter } = bench(context);
    given.lacks = resource;
    assert.deepEqual(await faultsAfter(11 * SECOND), [[fault, resource, 403]]);
    assert.deepEqual(given.reviewedAt, [0, 5, 10]);
    const grant = `The credentials lack the permission to ${lack} in all namespaces: grant it (cdk/rbac/relay).`;
    assert.equal(faults.list[0]?.error, grant);
    given.lacks = undefined;
    assert.deepEqual(await faultsAfter(5 * SECOND), []);
    assert.equal(given.answers, 0, 'the server answered each time');
  });

test('ends only its own notice of a fault', async (context) => {
  const { faults, faultsAfter } = bench(context);
  faults.begin({ type: 'list-failing', resource: 'pods' }, new Error('away'), { by: 'watch n1' });
  assert.deepEqual(await faultsAfter(SECOND), [['list-failing', 'pods', undefined]]);
});

for (const [status, whose] of [
  [0, 'pingError'],
  [500, 'pingError'],
  [503, 'reviewError'],
] as const)
  test(`pings every second while the server does not answer (${status}), and reports the first answer`, async (context) => {
    const { given, faultsAfter } = bench(context);
    await faultsAfter(SECOND);
    given[whose] = new ApiError('no answer', status);
    const shown = status === 0 ? undefined : status;
    const both = [
      ['list-failing', 'pods', shown],
      ['watch-failing', 'nodes', shown],
    ];
    // The next review is due at second 25.
    assert.deepEqual(await faultsAfter(25 * SECOND), both);
    const before = given.pings;
    assert.deepEqual(await faultsAfter(10 * SECOND), both);
    assert.deepEqual([given.pings - before, given.answers], [10, 0]);
    given[whose] = undefined;
    assert.deepEqual(await faultsAfter(SECOND), []);
    await faultsAfter(10 * SECOND);
    assert.equal(given.answers, 1);
  });

test('reports rejected credentials, which are an answer', async (context) => {
  const { given, faultsAfter } = bench(context);
  given.pingError = new ApiError('the credentials were rejected', 401);
  const faults = await faultsAfter(11 * SECOND);
  assert.deepEqual(
    faults.map(([, , status]) => status),
    [401, 401],
  );
  assert.equal(given.pings, 3);
  given.pingError = undefined;
  assert.deepEqual([await faultsAfter(5 * SECOND), given.answers], [[], 0]);
});

for (const status of [403, 404])
  test(`reports nothing of a server that does not review permissions (${status})`, async (context) => {
    const { given, faultsAfter } = bench(context);
    given.reviewError = new ApiError('not for you', status);
    assert.deepEqual(await faultsAfter(11 * SECOND), []);
    assert.deepEqual(given.reviewedAt, [0]);
  });

test('notes nothing after it is aborted, and ends', async (context) => {
  const { given, stopping, faultsAfter } = bench(context);
  const { promise, reject } = Promise.withResolvers<void>();
  given.answer = promise;
  await faultsAfter(25 * SECOND);
  stopping.abort();
  reject(new ApiError('no answer', 0));
  assert.deepEqual([await faultsAfter(SECOND), given.ended], [[], true]);
});
