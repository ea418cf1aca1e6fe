import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ownRegistration } from '#functions/agent/own-cluster.ts';
import { clusterName } from '#shared/eviction/identity.ts';
import type { RegisteredCluster } from '#shared/state/registry.ts';
import { StoreError } from '#shared/state/store.ts';
import { recordingLog } from '#test/contracts/recording-log.ts';

const CLUSTER = clusterName('closed');

test("lists the agent's own cluster while it is registered with the agent, and logs a missing registration once", async () => {
  const log = recordingLog();
  let access: RegisteredCluster['access'] | undefined;
  const reads: string[] = [];
  const { list } = ownRegistration({
    registry: {
      get: async (name) => {
        reads.push(name);
        return access && { name, access };
      },
    },
    cluster: CLUSTER,
    agent: 'edge-1',
    log,
  });
  const seen = async () => (await list()).clusters.map(({ name }) => name);
  const logged = () => log.lines.map(({ event }) => event);
  assert.deepEqual(await seen(), []);
  assert.deepEqual(await seen(), []);
  assert.deepEqual(logged(), ['agent.cluster-not-registered']);
  access = { kind: 'agent', agent: 'edge-1' };
  assert.deepEqual(await seen(), [CLUSTER]);
  access = { kind: 'agent', agent: 'edge-2' };
  assert.deepEqual(await seen(), []);
  access = { kind: 'local-context', context: 'c' };
  assert.deepEqual(await seen(), []);
  assert.deepEqual(logged(), ['agent.cluster-not-registered', 'agent.cluster-not-registered']);
  assert.deepEqual(new Set(reads), new Set([CLUSTER]));
});

test("logs no missing registration when the registry can't be read", async () => {
  const log = recordingLog();
  const { list } = ownRegistration({
    registry: { get: () => Promise.reject(new StoreError('the table is away')) },
    cluster: CLUSTER,
    agent: 'edge-1',
    log,
  });
  await assert.rejects(list(), { name: 'StoreError' });
  assert.deepEqual(log.lines, []);
});
