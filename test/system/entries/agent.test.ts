import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { test } from 'node:test';
import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { encodeDue } from '#shared/aws/due-message.ts';
import { clusterName, nodeName } from '#shared/eviction/identity.ts';
import { DynamoDbLeases } from '#shared/state/dynamodb/dynamodb-leases.ts';
import { DynamoDbClusterRegistry } from '#shared/state/dynamodb/dynamodb-registry.ts';
import { DynamoDbTable } from '#shared/state/dynamodb/dynamodb-table.ts';
import { systemClock } from '#shared/time/clock.ts';
import { until } from '#test/cluster/rig/until.ts';
import { startInstallation, startProgram } from './entries.ts';

const EDGE = clusterName('edge');

test('the entry of an agent rejects due evictions of another cluster, and sends deltas of its own until it stops', async (context) => {
  const { aws, cluster, environment } = await startInstallation(context);
  Object.assign(process.env, environment);
  const table = new DynamoDbTable({ client: new DynamoDBClient(), tableName: 'taintward' });
  const access = { kind: 'agent', agent: 'edge-1' } as const;
  await new DynamoDbClusterRegistry(table).add({ name: EDGE, access, addedAt: systemClock.now() });
  cluster.taint('node-1', 'maintenance=now:NoExecute');
  const agent = startProgram(
    context,
    '#functions/agent/main.ts',
    ['--context', cluster.context, '--kubeconfig', cluster.kubeconfig],
    { ...environment, AGENT: 'edge-1', CLUSTER: EDGE },
  );
  const foreign = encodeDue({ cluster: clusterName('prod'), node: nodeName('node-1'), at: 1 });
  aws.send('evictions-due', foreign);
  const [letter] = await until('the message is set aside', () => {
    const letters = aws.bodies('dead-letters');
    return letters.length > 0 && letters;
  });
  await until('the message has left the queue', () => aws.bodies('evictions-due').length === 0);
  await until('deltas are sent', () => aws.bodies('node-deltas.fifo').length > 0);
  const { code, stderr } = await agent.stop();
  assert.deepEqual([code, stderr], [0, '']);
  assert.equal(letter, foreign);
  assert.equal((await new DynamoDbLeases(table).read(EDGE))?.holder, undefined, 'the lease is released');
});

test('the entry of an agent stops although its API server never answered', async (context) => {
  const { cluster, environment } = await startInstallation(context);
  // No server listens at this port.
  const kubeconfig = `${cluster.kubeconfig}.closed`;
  writeFileSync(
    kubeconfig,
    readFileSync(cluster.kubeconfig, 'utf8').replace(/127\.0\.0\.1:\d+/, '127.0.0.1:9'),
  );
  const agent = startProgram(
    context,
    '#functions/agent/main.ts',
    ['--context', cluster.context, '--kubeconfig', kubeconfig],
    { ...environment, AGENT: 'edge-1', CLUSTER: EDGE },
  );
  await until('the agent tried', () => agent.out.text.includes('"event":"cluster.unreachable"'));
  const { code, stderr } = await agent.stop();
  assert.deepEqual([code, stderr], [0, '']);
});
