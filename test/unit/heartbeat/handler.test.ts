import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Context } from 'aws-lambda';
import { createHandler } from '#functions/heartbeat/handler.ts';
import type { LeaseReader } from '#shared/clusters/lease.ts';
import type { RegisteredCluster } from '#shared/clusters/registry.ts';
import { type ClusterName, clusterName } from '#shared/eviction/identity.ts';
import { StoreError } from '#shared/store/store.ts';
import { Emf } from '#shared/telemetry/emf.ts';
import { NOW } from '#test/contracts/partition-builders.ts';
import { recordingLog } from '#test/contracts/recording-log.ts';

const registered = (name: string): RegisteredCluster => ({
  name: clusterName(name),
  access: { kind: 'local-context', context: name },
  addedAt: NOW,
});

/** What one beat counts and logs. */
async function beat(names: readonly string[], held: LeaseReader['held']) {
  const clock = { now: () => NOW };
  const log = recordingLog();
  const counts: number[][] = [];
  const write = (line: string) => counts.push(JSON.parse(line).taintward_unwatched_clusters);
  const handler = createHandler({
    registry: { list: async () => names.map(registered) },
    leases: { held },
    emf: new Emf({ namespace: 'taintward', clock, write }),
    clock,
    log,
  });
  await handler({}, {} as Context);
  return { counts, lines: log.lines };
}

test('the heartbeat counts the clusters that no relay speaks for, and names them', async () => {
  const asked: unknown[] = [];
  const held = async (clusters: readonly ClusterName[], now: number) => {
    asked.push([clusters, now]);
    return new Set([clusterName('b')]);
  };
  const { counts, lines } = await beat(['a', 'b', 'c'], held);
  assert.deepEqual(asked, [[['a', 'b', 'c'], NOW]]);
  assert.deepEqual(counts, [[2]]);
  assert.deepEqual(
    lines.map(({ event, fields }) => [event, fields['cluster']]),
    [
      ['cluster.unwatched', 'a'],
      ['cluster.unwatched', 'c'],
    ],
  );
});

test('the heartbeat says that all is well, or that nothing is registered: silence is alarming', async () => {
  assert.deepEqual((await beat([], async () => new Set())).counts, [[0]]);
  assert.deepEqual((await beat(['a'], async (all) => new Set(all))).counts, [[0]]);
});

test('the heartbeat fails when the table cannot be read', async () => {
  await assert.rejects(
    beat(['a'], () => Promise.reject(new StoreError('out of reach'))),
    StoreError,
  );
});
