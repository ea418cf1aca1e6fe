import assert from 'node:assert/strict';
import { test } from 'node:test';
import { checkedAccess } from '#shared/engine/evict/checked-access.ts';
import { type ClusterName, clusterName } from '#shared/eviction/identity.ts';
import type { Rules } from '#shared/eviction/policy.ts';
import { ApiError } from '#shared/kubernetes/http/api-error.ts';
import type { Permission } from '#shared/kubernetes/http/call.ts';
import { StoreError } from '#shared/state/store.ts';
import { recordingLog } from '#test/contracts/recording-log.ts';
import { DrivenClock } from '#test/world/driven-clock.ts';
import { FakeCluster } from '#test/world/fake-cluster.ts';
import { ruled } from './evict-bench.ts';

const MINUTE = 60_000;
const EVICT = ruled({ method: { kind: 'evict', timeoutMs: 60_000, onTimeout: 'delete' } });

function checked() {
  const clock = new DrivenClock(0);
  const log = recordingLog();
  const state = {
    rules: async (): Promise<Rules> => EVICT,
    answer: (): boolean => false,
    questions: [] as Permission[],
    lease: {} as { sameAs?: ClusterName },
  };
  const cluster = Object.assign(new FakeCluster(clock), {
    host: 'one.example.com',
    allowed: async (right: Permission) => {
      state.questions.push(right);
      return state.answer();
    },
  });
  const access = checkedAccess({
    clusters: { api: async () => cluster },
    lease: async () => state.lease,
    rules: () => state.rules(),
    clock,
    log,
  });
  const refused = () => access.api(clusterName('prod'));
  const reach = async () => assert.equal(await access.api(clusterName('prod')), cluster);
  const complaints = () => log.lines.filter(({ event }) => event === 'policy.permission-missing');
  return { clock, state, reach, refused, complaints };
}

test('logs once that the permission for the Eviction API is missing, where policy uses it', async () => {
  const { state, reach, complaints } = checked();
  await reach();
  await reach();
  const [{ fields } = { fields: {} }, ...more] = complaints();
  assert.equal(more.length, 0);
  assert.match(
    `${(fields as Record<string, unknown>)['error']}`,
    /^The policy sets method: evict, .* one\.example\.com lack the permission to create pods\/eviction: grant it \(cdk\/rbac\/eviction-api\)/,
  );
  assert.deepEqual(state.questions, [{ verb: 'create', resource: 'pods/eviction' }]);
});

test('logs a missing permission again after a while, and for each policy', async () => {
  const { clock, state, reach, complaints } = checked();
  await reach();
  state.rules = async () => ({ ...EVICT, policyRevision: EVICT.policyRevision + 1 });
  await reach();
  assert.equal(complaints().length, 2);
  await clock.advanceTo(10 * MINUTE);
  await reach();
  assert.equal(complaints().length, 3);
  state.answer = () => true;
  await clock.advanceTo(20 * MINUTE);
  await reach();
  await clock.advanceTo(60 * MINUTE);
  await reach();
  assert.deepEqual([complaints().length, state.questions.length], [3, 4]);
});

test('logs once that replicas cannot be counted, where policy limits evictions by a percentage', async () => {
  const { state, reach, complaints } = checked();
  state.rules = async () => ruled({ maxEvictionsPerWorkload: { count: '10%', windowMs: MINUTE } });
  await reach();
  assert.match(
    JSON.stringify(complaints()),
    /The policy sets maxEvictionsPerWorkload as a percentage, .* lack the permission to get deployments, .*get replicationcontrollers: grant it \(cdk\/rbac\/replicas\). Until then, pods of workloads wait there\./,
  );
});

test('checks no permission where policy limits evictions by a count, or where pods are deleted', async () => {
  const { state, reach } = checked();
  for (const maxEvictionsPerWorkload of [{ count: 3, windowMs: MINUTE }, undefined]) {
    state.rules = async () => ruled(maxEvictionsPerWorkload ? { maxEvictionsPerWorkload } : {});
    await reach();
  }
  assert.deepEqual(state.questions, []);
});

test('checks again a minute later when a cluster does not answer, and reaches it nevertheless', async () => {
  const { clock, state, reach, complaints } = checked();
  state.answer = () => {
    throw new ApiError('it does not answer', 0);
  };
  await reach();
  await reach();
  assert.equal(state.questions.length, 1);
  state.answer = () => false;
  await clock.advanceTo(MINUTE);
  await reach();
  assert.equal(complaints().length, 1);
});

test('reaches a cluster although its rules cannot be read', async () => {
  const { state, reach, complaints } = checked();
  state.rules = () => Promise.reject(new StoreError('the table is away'));
  await reach();
  assert.deepEqual(complaints(), []);
});

test('gives no access under a name whose cluster is managed under another name', async () => {
  const { state, reach, refused } = checked();
  state.lease = { sameAs: clusterName('main') };
  await assert.rejects(refused, {
    name: 'UnknownClusterError',
    message: 'prod and main are the same cluster, which is managed as main: name only one of the two.',
  });
  state.lease = {};
  await reach();
});
