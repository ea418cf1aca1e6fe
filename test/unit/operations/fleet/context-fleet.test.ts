import assert from 'node:assert/strict';
import { test } from 'node:test';
import { clusterNamed } from '#shared/operations/fleet/fleet.ts';
import { contextFleet } from '#shared/operations/fleet/open-fleet.ts';
import { DrivenClock } from '#test/world/driven-clock.ts';

test('rejects another cluster of a fleet next to a bare context and names the flags to add', async () => {
  const fleet = contextFleet({ kind: 'local-context', context: 'testbed' }, new DrivenClock(0));
  assert.equal(await clusterNamed('testbed', fleet), 'testbed');
  await assert.rejects(clusterNamed('prod', fleet), {
    name: 'FleetError',
    message:
      'Cluster "prod" not found: with --context alone, only testbed is known. To examine a cluster of a fleet by that context, also specify --table NAME or --state-dir DIR.',
  });
});
