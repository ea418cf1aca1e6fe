import assert from 'node:assert/strict';
import { test } from 'node:test';
import { encodeDue } from '#shared/aws/due-message.ts';
import { clusterName, nodeName } from '#shared/eviction/identity.ts';
import { until } from '#test/cluster/rig/until.ts';
import { startInstallation, startProgram } from './entries.ts';

test('the entry of an agent rejects due evictions of another cluster', async (context) => {
  const { aws, cluster, environment } = await startInstallation(context);
  const agent = startProgram(
    context,
    '#functions/agent/main.ts',
    ['--context', cluster.context, '--kubeconfig', cluster.kubeconfig],
    { ...environment, AGENT: 'edge-1', CLUSTER: 'edge' },
  );
  const foreign = encodeDue({ cluster: clusterName('prod'), node: nodeName('node-1'), at: 1 });
  aws.send('evictions-due', foreign);
  const [letter] = await until('the message is set aside', () => {
    const letters = aws.bodies('dead-letters');
    return letters.length > 0 && letters;
  });
  await until('the message has left the queue', () => aws.bodies('evictions-due').length === 0);
  const { code, stderr } = await agent.stop();
  assert.deepEqual([code, stderr], [0, '']);
  assert.equal(letter, foreign);
});
