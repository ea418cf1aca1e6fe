import assert from 'node:assert/strict';
import { test } from 'node:test';
import { agentOf, recentRegistrations } from '#shared/access/agent-of.ts';
import { clusterName } from '#shared/eviction/identity.ts';
import type { RegisteredCluster } from '#shared/state/registry.ts';
import { StoreError } from '#shared/state/store.ts';
import { DrivenClock } from '#test/world/driven-clock.ts';

const PROD = clusterName('prod');

/** Returns a registry that the test changes, the count of its reads, and the lookup of agents under test. */
function registered() {
  const clock = new DrivenClock(0);
  const registry = {
    access: { kind: 'agent', agent: 'edge-1' } as RegisteredCluster['access'] | undefined,
    reads: 0,
    away: false,
    async get(name: typeof PROD): Promise<RegisteredCluster | undefined> {
      registry.reads += 1;
      if (registry.away) throw new StoreError('the table is away');
      return registry.access && { name, access: registry.access };
    },
  };
  return { clock, registry, agent: agentOf(recentRegistrations(registry, clock)) };
}

test("returns the agent that a cluster's registration names, or none", async () => {
  const { clock, registry, agent } = registered();
  assert.equal(await agent(PROD), 'edge-1');
  for (const access of [
    { kind: 'local-context', context: 'c' } as const,
    { kind: 'unreadable', reason: 'x' } as const,
    undefined,
  ]) {
    registry.access = access;
    await clock.advanceTo(clock.now() + 10_000);
    assert.equal(await agent(PROD), undefined);
  }
});

test("reads a cluster's registration once per refresh interval, regardless of the number of callers", async () => {
  const { clock, registry, agent } = registered();
  await Promise.all([agent(PROD), agent(PROD), agent(PROD)]);
  assert.equal(registry.reads, 1);
  await agent(clusterName('other'));
  assert.equal(registry.reads, 2);
  await clock.advanceTo(7_999);
  await agent(PROD);
  assert.equal(registry.reads, 2);
  await clock.advanceTo(8_000);
  await agent(PROD);
  assert.equal(registry.reads, 3);
});

test('reads the registration again after a failed read', async () => {
  const { registry, agent } = registered();
  registry.away = true;
  await assert.rejects(agent(PROD), { name: 'StoreError' });
  registry.away = false;
  assert.equal(await agent(PROD), 'edge-1');
});
