import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fileStage } from './rig/file-stage.ts';
import { until } from './rig/until.ts';

const stage = fileStage('bare');

const WINDOW_MS = 5_000;
const COUNT = 2;

test('evicts no more pods of a workload on two nodes within the window than its limit, across restarts', async (t) => {
  const { cluster } = stage();
  const stateDir = stage().newStateDir();
  const limit = `{ count: ${COUNT}, window: ${WINDOW_MS / 1000}s }`;
  const policy = stage().write(
    'limited.yaml',
    `mode: enforce\nguard: off\nmaxEvictionsPerWorkload: ${limit}\n`,
  );
  const [node, other, owner] = await Promise.all(
    ['limited', 'limited-too', 'owner'].map((name) => cluster.addNode(name)),
  );
  assert.ok(node && other && owner);
  const pods = await Promise.all(
    [node, other].flatMap((place) =>
      [1, 2, 3].map((index) => cluster.addPod(place, `${place}-${index}`, { owner })),
    ),
  );
  const first = await stage().start({ stateDir, policy });
  await Promise.all([cluster.taint(node, { key: 'x' }), cluster.taint(other, { key: 'x' })]);
  const goneNow = () => pods.flatMap(({ evictedAt }) => evictedAt ?? []).sort((a, b) => a - b);
  await until('as many as may go have gone', () => goneNow().length >= COUNT);
  const waiting = pods.filter(({ evictedAt }) => evictedAt === undefined);
  for (const { name } of waiting) {
    await until(`an Event says that ${name} waits`, () =>
      cluster.witness.reasonsOf(name).includes('TaintwardEvictionHeld'),
    );
  }
  await first.kill();
  await stage().start({ stateDir, policy });
  await until('all have gone', () => goneNow().length === pods.length);
  const gone = goneNow();
  t.diagnostic(`six pods went after ${gone.map((at) => at - (gone[0] ?? 0)).join(', ')} ms`);
  for (const from of gone) {
    assert.ok(gone.filter((at) => at >= from && at < from + WINDOW_MS).length <= COUNT, gone.join());
  }
});
