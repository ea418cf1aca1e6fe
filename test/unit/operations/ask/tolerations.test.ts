import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { clusterName } from '#shared/eviction/identity.ts';
import { askTolerations, type TolerationsQuestion } from '#shared/operations/ask/tolerations.ts';
import { type ContextFleet, FleetError } from '#shared/operations/fleet/fleet.ts';
import { liveCluster } from '#shared/operations/fleet/live-cluster.ts';
import { systemClock } from '#shared/time/clock.ts';
import { startSimulatedCluster } from '#simulator/cluster.ts';
import { loadContexts } from '#test/world/load-contexts.ts';

const cluster = clusterName('simulated');
const checkout = { namespace: 'default', kind: 'Deployment', name: 'checkout' };
const LIST = [{ key: 'maintenance', operator: 'Exists', effect: 'NoExecute', tolerationSeconds: 90 }];

test('an API server takes the writes of a template and of pods, each only as long as its object is the same', async (t) => {
  const dir = mkdtempSync(join(tmpdir(), 'tolerations-'));
  const simulated = await startSimulatedCluster({ clock: systemClock, dir });
  t.after(async () => {
    await simulated.close();
    rmSync(dir, { recursive: true });
  });
  const [context] = loadContexts({ kubeconfig: simulated.kubeconfig, contexts: [simulated.context] });
  assert.ok(context);
  const live = liveCluster(context.connection, systemClock);
  t.after(() => live.close());
  const fleet = { kind: 'context', where: 'a test', cluster: async () => live } as unknown as ContextFleet;
  const ask = (more: Partial<TolerationsQuestion>) =>
    askTolerations(
      live,
      fleet,
      { cluster, workload: checkout, pods: false, matching: { comparisonOperators: false }, ...more },
      { clock: systemClock },
    );
  const write = async ({ writes }: Awaited<ReturnType<typeof ask>>) => {
    for (const { path, check, operations } of writes)
      await live.objects.patch(path, [check, ...operations], 'a test');
  };

  const added = [{ key: 'other', operator: 'Exists' }];
  const ofPods = await ask({ pods: true, tolerations: added });
  assert.notEqual(ofPods.answer.commands.length, 0);
  await write(ofPods);
  assert.deepEqual((await ask({ pods: true, tolerations: added })).answer.commands, []);
  const [first] = ofPods.writes;
  assert.ok(first);
  const another = { op: 'test', path: '/metadata/uid', value: 'another' } as const;
  await assert.rejects(live.objects.patch(first.path, [another, ...first.operations], 'a test'), {
    status: 422,
  });

  const ofTemplate = await ask({ tolerations: LIST });
  await write(ofTemplate);
  assert.deepEqual((await ask({})).answer.next, LIST);
  await assert.rejects(write(ofTemplate), { status: 409 });
  await assert.rejects(ask({ workload: { ...checkout, name: 'none' } }), FleetError);
});
