import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { AgentOf } from '#shared/access/agent-of.ts';
import { RoutedTimers } from '#shared/aws/routed-timers.ts';
import { TimerError, type Timers } from '#shared/engine/timers.ts';
import { clusterName, type NodeRef } from '#shared/eviction/identity.ts';
import { StoreError } from '#shared/state/store.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import { aRef, NOW } from '#test/contracts/partition-builders.ts';

const OPEN = aRef(clusterName('open'));
const CLOSED = aRef(clusterName('closed'));

/** Returns timers of a fleet with the agent edge-1 in one cluster, and the armed timers. */
function routed(agentOf: AgentOf = async (cluster) => (cluster === 'closed' ? 'edge-1' : undefined)) {
  const armed: { readonly of: string; readonly ref: NodeRef; readonly at: readonly EpochMs[] }[] = [];
  const reads: string[] = [];
  const timers = (owner: string): Timers => ({
    arm: async (ref, at) => {
      armed.push({ of: owner, ref, at });
    },
  });
  const all = new RoutedTimers({
    own: timers('evict'),
    ofAgent: timers,
    agentOf: (cluster) => {
      reads.push(cluster);
      return agentOf(cluster);
    },
  });
  return { timers: all, armed, reads };
}

describe('RoutedTimers', () => {
  test('arm in the queue of the cluster’s agent, and otherwise in the queue of evict', async () => {
    const { timers, armed } = routed();
    await timers.arm(OPEN, [NOW]);
    await timers.arm(CLOSED, [NOW, NOW + 1]);
    assert.deepEqual(armed, [
      { of: 'evict', ref: OPEN, at: [NOW] },
      { of: 'edge-1', ref: CLOSED, at: [NOW, NOW + 1] },
    ]);
  });

  test('look up no agent where nothing is to be armed', async () => {
    const { timers, armed, reads } = routed();
    await timers.arm(CLOSED, []);
    assert.deepEqual([armed, reads], [[], []]);
  });

  test('reject and arm nothing while the agent of the cluster is unknown', async () => {
    const { timers, armed } = routed(() => Promise.reject(new StoreError('the table is away')));
    await assert.rejects(timers.arm(OPEN, [NOW]), (error) => {
      assert.ok(error instanceof TimerError);
      assert.match(error.message, /^node node-1 of open: a timer could not be armed: the table is away; /);
      return true;
    });
    assert.deepEqual(armed, []);
  });
});
