import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { examine } from '#functions/operator/doctor.ts';
import { clusterName } from '#shared/eviction/identity.ts';
import { DrivenClock } from '#test/world/driven-clock.ts';
import { embeddedFleet } from '#test/world/embedded-fleet.ts';
import { controllerManager, type Shown, shownCluster } from '#test/world/shown-cluster.ts';

const NOW = Date.UTC(2026, 10, 21, 12);
const HOUR_MS = 3_600_000;
const prod = clusterName('prod');

/** A fleet of the cluster `prod`, which shows this, and what is found there. */
function examined(t: TestContext, shown: Shown) {
  const clock = new DrivenClock(NOW);
  const found = embeddedFleet(
    t,
    { clusters: ['prod'], clock },
    { cluster: async () => shownCluster(shown, clock.now()) },
  );
  const findings = (fleet = found.fleet) => examine(fleet, [prod], { clock, progress: () => undefined });
  return { ...found, clock, findings };
}

const about = (what: string, findings: Awaited<ReturnType<typeof examine>>) =>
  findings.filter((finding) => finding.what === what).map(({ verdict, says }) => [verdict, says]);

test('a pause that is over is told as what it is then: enforced', async (t) => {
  const { fleet, clock, findings } = examined(t, controllerManager('off'));
  const operator = await fleet.operator();
  await operator.applyPolicy(prod, 'mode: enforce\n');
  await operator.pause(prod, { why: 'an upgrade', forMs: HOUR_MS });
  const by = 'by the flags of 1 of 1 kube-controller-manager pods';
  assert.deepEqual(about('built-in', await findings()), [
    ['bad', `It is off (${by}), and the policy is paused: nobody evicts.`],
  ]);
  await clock.advanceTo(NOW + HOUR_MS);
  assert.deepEqual(about('built-in', await findings()), [['ok', `It is off (${by}), and we evict.`]]);
});
