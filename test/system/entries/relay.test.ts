import assert from 'node:assert/strict';
import { test } from 'node:test';
import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { CLUSTER_LOAD } from '#shared/engine/watch/fleet.ts';
import { clusterName } from '#shared/eviction/identity.ts';
import { DynamoDbClusterRegistry } from '#shared/state/dynamodb/dynamodb-registry.ts';
import { DynamoDbTable } from '#shared/state/dynamodb/dynamodb-table.ts';
import { systemClock } from '#shared/time/clock.ts';
import { until } from '#test/cluster/rig/until.ts';
import { heldRegistry, probed, startInstallation, startProgram, withoutWait } from './entries.ts';

test('the entry of a relay is ready once the registrations are read, follows only CLUSTERS without an agent, reports one whose nodes exceed its NODE_CAPACITY, and ends after its time to stop', async (context) => {
  const registry = heldRegistry();
  const { environment } = await startInstallation(context, { held: registry.held });
  Object.assign(process.env, environment);
  const table = new DynamoDbTable({ client: new DynamoDBClient(), tableName: 'taintward' });
  const access = {
    kind: 'kubeconfig-secret',
    secretArn: 'arn:aws:secretsmanager:us-east-1:000000000000:secret:prod',
  } as const;
  const others = { other: access, 'prod-2': { kind: 'agent', agent: 'edge-1' } } as const;
  for (const [name, by] of Object.entries({ prod: access, ...others })) {
    const added = { name: clusterName(name), access: by, addedAt: systemClock.now() };
    await new DynamoDbClusterRegistry(table).add(added);
  }
  const settings = { NODE_CAPACITY: String(CLUSTER_LOAD), CLUSTERS: 'prod*' };
  const env = { ...environment, ...settings, NODE_OPTIONS: withoutWait(20_000) };
  const relay = startProgram(context, '#functions/relay/main.ts', [], env);
  await until('it reads the registrations', () => registry.reads() > 0);
  assert.match(await probed(relay, 'readyz'), /^\[-\]unreadable failed: /);
  registry.release();
  await until('relay.over-capacity', () => relay.out.text.includes('"event":"relay.over-capacity"'));
  assert.equal((await relay.stop()).code, 0);
  const lines = relay.out.all.map((line) => JSON.parse(line));
  assert.deepEqual(
    lines.flatMap(({ event, cluster }) => (event === 'cluster.added' ? [cluster] : [])),
    ['prod'],
  );
  const ends = lines.map(({ event }) => `${event}`).filter((event) => /relay\.(stop|shutdown)/.test(event));
  assert.deepEqual(ends, ['relay.stopping', 'relay.shutdown-timed-out', 'relay.stopped']);
});
