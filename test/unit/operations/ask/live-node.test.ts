import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { nodeName } from '#shared/eviction/identity.ts';
import { ApiError } from '#shared/kubernetes/http/api-error.ts';
import { liveNode, shownIn } from '#shared/operations/ask/live-node.ts';
import type { LiveCluster } from '#shared/operations/fleet/live-cluster.ts';
import { NODE_UNREACHABLE } from '#shared/taints/taint.ts';
import { liveNode as aNode } from '#test/unit/engine/watch/live-objects.ts';
import { at } from '#test/unit/eviction/builders.ts';
import { DrivenClock } from '#test/world/driven-clock.ts';
import { FakeCluster } from '#test/world/fake-cluster.ts';

const NODE = nodeName('n1');

/** A node with this taint whose Lease was renewed 10 s ago by the cluster's clock, and the requests for it. */
function shown(key: string, refusal?: ApiError) {
  const clock = new DrivenClock(at(60));
  const cluster = new FakeCluster(clock);
  cluster.putNode(aNode('n1', key));
  cluster.skewMs = -20_000;
  cluster.nodeLeases.set('n1', { renewedAt: at(30), durationMs: 40_000 });
  const requests: string[] = [];
  cluster.beforeRequest = (verb) => {
    requests.push(verb);
    if (verb === 'get-lease' && refusal) throw refusal;
  };
  const api = Object.assign(cluster, { host: 'shown', allowed: async () => true });
  const read = (kind: 'deployed' | 'context' = 'deployed') =>
    liveNode({ api } satisfies Pick<LiveCluster, 'api'>, NODE, { kind }, clock);
  return { requests, read };
}

describe('a read of a node', () => {
  test('returns whether an unreachable node renews its Lease', async () => {
    const { life, lifeUnknown } = await shown(NODE_UNREACHABLE).read();
    assert.deepEqual([life, lifeUnknown], [{ kind: 'alive', renewedAt: at(30), until: at(90) }, undefined]);
  });

  test("reads no Lease of a node with other taints, or when the Lease doesn't matter", async () => {
    const other = shown('a');
    await other.read();
    const uncounted = shown(NODE_UNREACHABLE);
    await uncounted.read('context');
    assert.deepEqual([other.requests, uncounted.requests], [['get'], ['get']]);
  });

  test('returns the cause of an unreadable Lease and all other fields', async () => {
    const { read } = shown(NODE_UNREACHABLE, new ApiError('It is forbidden.', 403));
    const { taints, life, lifeUnknown } = await read();
    assert.equal(taints?.length, 1);
    assert.deepEqual([life, lifeUnknown], [undefined, 'It is forbidden']);
  });
});

test('a node has had all its taints since the latest write of any of their managers', () => {
  const [early, late] = ['anna@2026-11-21T12:00:00Z', 'ben@2026-11-21T12:00:05Z'];
  const rows: readonly (readonly [stamp: string | undefined, at: string | undefined])[] = [
    [undefined, undefined],
    ['', undefined],
    ['anna@', undefined],
    [early, '2026-11-21T12:00:00Z'],
    [`${early},${late}`, '2026-11-21T12:00:05Z'],
    [`${late},${early},carl@`, '2026-11-21T12:00:05Z'],
  ];
  for (const [taintsStamp, at] of rows)
    assert.equal(shownIn({ kind: 'context' }, { taints: [], taintsStamp }).foundAt, at && Date.parse(at));
});
