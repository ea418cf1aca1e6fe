import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { neededPermissions } from '#functions/service/start-policies.ts';
import { clusterName } from '#shared/eviction/identity.ts';
import { isRequired, NEEDED_PERMISSIONS, OBSERVE_PERMISSIONS } from '#shared/kubernetes/permissions.ts';
import { perform } from '#shared/operations/acts/perform.ts';
import { policyFile } from '#shared/state/policy-file.ts';
import { systemClock } from '#shared/time/clock.ts';
import { embeddedFleet } from '#test/world/embedded-fleet.ts';

/** Events are optional. */
const EVICTING = NEEDED_PERMISSIONS.filter(isRequired);

const prod = clusterName('prod');

test('requires permissions to evict only if some policy of a cluster is not in observe mode', async (t) => {
  const { fleet } = embeddedFleet(t, { clusters: ['prod'], clock: systemClock });
  const dir = mkdtempSync(join(tmpdir(), 'policy-'));
  t.after(() => rmSync(dir, { recursive: true }));
  const permissions = (enforce: boolean, file?: string) =>
    neededPermissions(
      { enforce, source: file === undefined ? undefined : policyFile(file) },
      fleet.rulesStore,
    )(prod);
  const policy = (mode: string) => {
    const path = join(dir, `${mode}.yaml`);
    writeFileSync(path, `mode: ${mode}\n`);
    return path;
  };
  assert.deepEqual(await permissions(false), OBSERVE_PERMISSIONS);
  assert.deepEqual(await permissions(false, policy('observe')), OBSERVE_PERMISSIONS);
  assert.deepEqual(await permissions(true), EVICTING);
  assert.deepEqual(await permissions(true, policy('observe')), OBSERVE_PERMISSIONS);
  assert.deepEqual(await permissions(false, policy('enforce')), EVICTING);
  await perform(
    { kind: 'apply-policy', cluster: prod, text: 'mode: enforce\nguard: off\n' },
    await fleet.operator(),
  );
  assert.deepEqual(await permissions(false), EVICTING);
  assert.deepEqual(await permissions(false, policy('observe')), OBSERVE_PERMISSIONS);
  assert.deepEqual(await permissions(false, policy('off')), EVICTING);
});
