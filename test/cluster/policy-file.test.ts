import { type TestContext, test } from 'node:test';
import { assertUntouched } from './rig/deadline.ts';
import { fileStage } from './rig/file-stage.ts';
import { until } from './rig/until.ts';

const stage = fileStage('bare');

/** Reports the time between `since` and now as a diagnostic of the test. */
function report(t: TestContext, what: string, since: number): void {
  t.diagnostic(`${what} after ${Date.now() - since} ms`);
}

test('observes a cluster until its policy file enforces, and ignores a policy file with a mistake', async (t) => {
  const { cluster } = stage();
  const policy = stage().write('policy.yaml', 'mode: observe');
  const service = await stage().start({ policy });
  const node = await cluster.addNode('observed');
  const pod = await cluster.addPod(node, 'observed');
  await cluster.taint(node, { key: 'maintenance' });
  await service.untilPrinted(pod.name, 'would be evicted');

  stage().write('policy.yaml', 'mode: enforced');
  await service.untilPrinted('policy.invalid', 'policy.mode');
  assertUntouched(pod);

  const since = Date.now();
  stage().write('policy.yaml', 'mode: enforce\nguard: off\n');
  await until('what was only observed goes', () => pod.evictedAt);
  report(t, 'evicted', since);
});
