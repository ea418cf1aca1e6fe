import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fileStage } from './rig/file-stage.ts';
import { until } from './rig/until.ts';

const stage = fileStage('bare');

/** The built-in controller starts evicting within milliseconds. */
const OTHERS_WITHIN_MS = 3_000;

test("has no other eviction controller: the cluster's taint-eviction-controller is off", async () => {
  const { cluster } = stage();
  const node = await cluster.addNode('alone');
  const pod = await cluster.addPod(node, 'alone');
  await cluster.taint(node, { key: 'maintenance' });
  const someoneDid = until('somebody evicts', () => pod.evictedAt, OTHERS_WITHIN_MS);
  await assert.rejects(
    someoneDid,
    /^Error: somebody evicts: not within/,
    'somebody does: start the kube-controller-manager with --controllers=*,-taint-eviction-controller',
  );
});
