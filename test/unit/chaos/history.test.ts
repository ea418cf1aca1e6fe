import assert from 'node:assert/strict';
import { test } from 'node:test';
import { historyOf, type Passed } from '#test/chaos/history.ts';
import type { TappedRequest } from '#test/cluster/rig/wiretap.ts';
import type { PodLife } from '#test/cluster/rig/witness.ts';

const POD: PodLife = {
  uid: 'u',
  name: 'p',
  node: 'n',
  seenAt: 0,
  generation: 1,
  tolerations: [],
  moments: [{ at: 0, labels: {}, tolerations: [] }],
};
const request = (at: number, more: Partial<TappedRequest>): TappedRequest => ({
  at,
  method: 'GET',
  path: '/api/v1/nodes/n',
  contentType: '',
  body: '',
  forwardedAt: at,
  ...more,
});
/** A read that was requested at `at` and answered at `answeredAt`. */
const readAt = (at: number, answeredAt: number, status = 200) =>
  request(at, { answer: { status, at: answeredAt } });

/** Returns the time and the age of the read that a delete sent at ten seconds is based on. */
function restingUpon(reads: readonly TappedRequest[], unreported: Passed['unreported'] = []) {
  const path = '/api/v1/namespaces/default/pods/p';
  const body = JSON.stringify({ preconditions: { uid: 'u' } });
  const sent = request(10_000, { method: 'DELETE', path, body, status: 200 });
  const seen = { nodes: new Map(), pods: new Map([['u', POD]]) };
  const { deletes } = historyOf(seen, { requests: [...reads, sent], unreported }, new Set(), 20_000);
  const [found] = deletes;
  return found && [found.readAt, found.readAgeMs];
}

test('bases a delete on the oldest read whose answer was recent enough, as of the request of that read', () => {
  assert.deepEqual(restingUpon([readAt(9_000, 9_900)]), [9_000, 100]);
  assert.deepEqual(restingUpon([readAt(9_200, 9_300), readAt(9_800, 9_900)]), [9_200, 100]);
  assert.deepEqual(restingUpon([readAt(5_000, 9_200), readAt(9_800, 9_900)]), [9_800, 100]);
});

test('assumes the oldest permitted read for a delete without a recent answer', () => {
  assert.deepEqual(restingUpon([readAt(5_000, 5_100)]), [9_250, 4_900]);
  assert.deepEqual(restingUpon([]), [9_250, undefined]);
});

test('ignores reads that failed, were aborted, or were answered after the delete', () => {
  assert.deepEqual(restingUpon([readAt(9_900, 9_950, 500)]), [9_250, undefined]);
  assert.deepEqual(restingUpon([request(9_900, { status: 200 })]), [9_250, undefined]);
  assert.deepEqual(restingUpon([readAt(9_900, 10_001)]), [9_250, undefined]);
});

test('does not age answers while the service process is stopped', () => {
  assert.deepEqual(restingUpon([readAt(4_950, 5_000)], [{ from: 5_010, to: 9_900 }]), [4_950, 110]);
});
