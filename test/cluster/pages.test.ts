import { test } from 'node:test';
import { followPage } from '#test/transcripts/follow-page.ts';
import { fileStage } from './rig/file-stage.ts';
import { CONTEXT } from './rig/stage.ts';

const stage = fileStage('bare');

test('moves from observing to enforcing with the commands of the page move-to-enforce', async (t) => {
  const { cluster, kubeconfig } = stage();
  const node = await cluster.addNode('followed');
  await cluster.addPod(node, 'followed');
  await followPage(t, 'how-to/move-to-enforce.md', {
    suite: 'cluster',
    names: [
      ['staging', CONTEXT],
      ['worker-1', node],
      ['shop', cluster.namespace],
    ],
    env: { ...process.env, KUBECONFIG: kubeconfig },
  });
});
