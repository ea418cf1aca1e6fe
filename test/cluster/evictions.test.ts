import assert from 'node:assert/strict';
import { test } from 'node:test';
import { assertUntouched } from './rig/deadline.ts';
import { fileStage } from './rig/file-stage.ts';
import { evictedOnTime, momentComes } from './rig/on-time.ts';
import { FOREVER, tolerates } from './rig/tolerations.ts';
import { until } from './rig/until.ts';
import { cancellingDeletion, markingDeletion } from './rig/upstream-events.ts';

const stage = fileStage('served through a wiretap');

test('sets the condition on an evicted pod before deleting it, as the built-in controller does', async () => {
  const { cluster, wiretap } = stage();
  const node = await cluster.addNode('condition');
  const pod = await cluster.addPod(node, 'condition');
  const tainted = await cluster.taint(node, { key: 'maintenance' });
  await evictedOnTime(pod, 0, tainted);

  assert.ok(pod.disruption);
  const { beforeDeletion, lastTransitionTime, observedGeneration, ...condition } = pod.disruption;
  assert.ok(beforeDeletion, 'the condition was there before the deletion');
  assert.deepEqual(condition, {
    type: 'DisruptionTarget',
    status: 'True',
    reason: 'DeletionByTaintManager',
    message: 'Taint manager: deleting due to NoExecute taint',
  });
  const changedAt = Date.parse(lastTransitionTime ?? '');
  assert.ok(
    changedAt > tainted.requestedAt - 1000 && changedAt <= Date.now(),
    `${lastTransitionTime} is the moment`,
  );
  assert.equal(observedGeneration, pod.generation, 'the generation the decision was made on');
  assert.equal(pod.gracePeriodSeconds, 30, "the pod's own grace period");

  const path = cluster.podPath(pod.name);
  const writes = wiretap.requests.filter(
    (request) => request.method !== 'GET' && request.path.startsWith(path),
  );
  assert.deepEqual(
    writes.map(({ method, path: written, contentType }) => [
      method,
      // The field manager contains a name that is unique to each process.
      written.replace(/\?fieldManager=taintward-.+$/, ' by us'),
      contentType,
    ]),
    [
      ['PATCH', `${path}/status by us`, 'application/strategic-merge-patch+json'],
      ['DELETE', path, 'application/json'],
    ],
  );
  const [patch, deletion] = writes.map(({ body }) => JSON.parse(body));
  assert.deepEqual(patch.metadata, { uid: pod.uid });
  const { resourceVersion, ...preconditions } = deletion.preconditions;
  assert.deepEqual(
    { ...deletion, preconditions },
    { apiVersion: 'v1', kind: 'DeleteOptions', preconditions: { uid: pod.uid } },
  );
  assert.match(resourceVersion, /^\d+$/, 'the very pod that the patch answered');
});

test("writes one Event per eviction, with the built-in controller's message", async () => {
  const { cluster } = stage();
  const node = await cluster.addNode('event');
  const pod = await cluster.addPod(node, 'event', { tolerations: [tolerates('maintenance', 1)] });
  const tainted = await cluster.taint(node, { key: 'maintenance' });
  await evictedOnTime(pod, 1, tainted);
  const event = await until('an Event', () => cluster.witness.taintManagerEvents(pod.name)[0]);
  const { at, metadata, firstTimestamp, ...fields } = event;
  assert.deepEqual(fields, {
    involvedObject: { kind: 'Pod', namespace: cluster.namespace, name: pod.name, apiVersion: 'v1' },
    type: 'Normal',
    reason: 'TaintManagerEviction',
    message: markingDeletion(cluster.namespace, pod.name),
    source: { component: 'taint-eviction-controller' },
    reportingComponent: 'taint-eviction-controller',
    count: 1,
  });
  assert.ok(metadata.name.startsWith(`${pod.name}.`));
  assert.ok(Date.parse(firstTimestamp ?? '') > tainted.requestedAt - 1000 && at >= tainted.requestedAt);
});

test("spares a new pod of the same name while its predecessor's deletion is in progress", async () => {
  const { cluster, service, wiretap } = stage();
  const node = await cluster.addNode('replaced');
  const [pod, fence] = await Promise.all([
    cluster.addPod(node, 'replaced', { tolerations: [tolerates('maintenance', 1)] }),
    cluster.addPod(node, 'fence', { tolerations: [tolerates('maintenance', 4)] }),
  ]);
  const path = cluster.podPath(pod.name);
  const deletion = wiretap.hold((request) => request.method === 'DELETE' && request.path === path);
  const tainted = await cluster.taint(node, { key: 'maintenance' });
  const request = await deletion.first();
  await cluster.deletePod(pod);
  const successor = await cluster.addPod(node, pod.name, { tolerations: [FOREVER] });
  deletion.release();
  await service.untilPrinted(node, pod.name, 'already gone');
  assert.equal(request.status, 409, 'the API server refused to delete a pod with another UID');
  await evictedOnTime(fence, 4, tainted);
  assertUntouched(successor);
  assert.deepEqual(cluster.witness.taintManagerEvents(pod.name), []);
});

test('spares new pods that replace pods of the same name exactly at their deadlines', async () => {
  const { cluster } = stage();
  const node = await cluster.addNode('races');
  const offsetsMs = [-60, -40, -20, -10, 0, 5, 10, 15, 20, 30];
  const pods = await Promise.all(
    offsetsMs.map((_, index) =>
      cluster.addPod(node, `race-${index}`, { tolerations: [tolerates('maintenance', 2)] }),
    ),
  );
  const fence = await cluster.addPod(node, 'races-fence', { tolerations: [tolerates('maintenance', 4)] });
  const tainted = await cluster.taint(node, { key: 'maintenance' });
  const successors = await Promise.all(
    pods.map(async (pod, index) => {
      const replacedAt = tainted.seenAt + 2000 + (offsetsMs[index] ?? 0);
      await momentComes(replacedAt);
      await cluster.deletePod(pod);
      return cluster.addPod(node, pod.name, { tolerations: [FOREVER] });
    }),
  );
  await evictedOnTime(fence, 4, tainted);
  assertUntouched(...successors);
});

test("does not apply a replaced pod's deadline to the new pod of the same name", async () => {
  const { cluster, service } = stage();
  const node = await cluster.addNode('heir');
  const pod = await cluster.addPod(node, 'heir', { tolerations: [tolerates('maintenance', 2)] });
  const tainted = await cluster.taint(node, { key: 'maintenance' });
  await service.untilPrinted(node, pod.name, 'eviction at');
  await momentComes(tainted.seenAt + 1000);
  await cluster.deletePod(pod);
  const requestedAt = Date.now();
  const heir = await cluster.addPod(node, pod.name, { tolerations: [tolerates('maintenance', 3)] });
  await evictedOnTime(heir, 3, { requestedAt, seenAt: heir.seenAt });
});

test('writes an Event that cancels the deletion of a pod that somebody else deleted, and no error', async () => {
  const { cluster, service } = stage();
  const node = await cluster.addNode('deleted');
  const [pod, fence] = await Promise.all([
    cluster.addPod(node, 'deleted', { tolerations: [tolerates('maintenance', 2)] }),
    cluster.addPod(node, 'deleted-fence', { tolerations: [tolerates('maintenance', 3)] }),
  ]);
  const tainted = await cluster.taint(node, { key: 'maintenance' });
  await service.untilPrinted(node, pod.name, 'eviction at');
  await cluster.deletePod(pod);
  await evictedOnTime(fence, 3, tainted);
  assert.equal(pod.disruption, undefined);
  const messages = cluster.witness.taintManagerEvents(pod.name).map(({ message }) => message);
  assert.deepEqual(messages, [cancellingDeletion(cluster.namespace, pod.name)]);
  assert.deepEqual(service.complaints(), []);
});
