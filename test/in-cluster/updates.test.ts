import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, afterEach, before, type TestContext, test } from 'node:test';
import { assertReportedOnce } from '#test/cluster/rig/deadline.ts';
import { evictedOnTime } from '#test/cluster/rig/on-time.ts';
import { Replicas } from '#test/cluster/rig/replicas.ts';
import type { ServiceProcess } from '#test/cluster/rig/service-process.ts';
import { tolerates } from '#test/cluster/rig/tolerations.ts';

const ROOT = join(import.meta.dirname, '../..');

let replicas: Replicas;
before(async () => {
  replicas = await Replicas.open();
});
afterEach(() => replicas.killAll());
after(() => replicas?.close());

/** Returns a folder with these sources under another version, which stand for another release. */
function releaseOf(t: TestContext, version: string): string {
  const dir = mkdtempSync(join(tmpdir(), 'taintward-release-'));
  t.after(() => rmSync(dir, { recursive: true, force: true }));
  for (const room of ['bin', 'functions', 'shared', 'simulator'])
    cpSync(join(ROOT, room), join(dir, room), { recursive: true });
  symlinkSync(join(ROOT, 'node_modules'), join(dir, 'node_modules'));
  const project = { ...JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')), version };
  writeFileSync(join(dir, 'package.json'), JSON.stringify(project));
  const printed = execFileSync(process.execPath, ['functions/service/main.ts', '--version'], { cwd: dir });
  assert.equal(printed.toString().trim(), version);
  return dir;
}

/** Updates replicas as a Deployment does: it starts a new one, and stops an old one once the new one is ready. */
async function rollOut(
  release: string,
  ...old: readonly ServiceProcess[]
): Promise<readonly ServiceProcess[]> {
  const fresh: ServiceProcess[] = [];
  for (const replica of old) {
    fresh.push(await replicas.start({ release }));
    await replica.stop();
  }
  return fresh;
}

test('replicas are updated to the next release, and back, one by one, and every deadline is kept', async (t) => {
  const { cluster } = replicas;
  const times = [30, 45, 60];
  const node = await cluster.addNode('updated');
  const pods = await Promise.all(
    times.map((seconds) =>
      cluster.addPod(node, `updated-${seconds}`, { tolerations: [tolerates('x', seconds)], comesBack: true }),
    ),
  );
  const [next, before] = ['99.0.0', '0.0.1'].map((version) => releaseOf(t, version));
  assert.ok(next && before);
  const leader = await replicas.startLeader();
  const standby = await replicas.start();
  const tainted = await cluster.taint(node, { key: 'x' });
  for (const pod of pods) await leader.untilPrinted(node, pod.name, 'eviction at');

  const updated = await rollOut(next, leader, standby);
  await leads(updated);
  const back = await rollOut(before, ...updated);
  await leads(back);

  const late = await Promise.all(pods.map((pod, index) => evictedOnTime(pod, times[index] ?? 0, tainted)));
  assertReportedOnce(cluster.witness, ...pods);
  t.diagnostic(`evicted ${late.join(', ')} ms after the deadlines`);
});

const leads = (some: readonly ServiceProcess[]) => Promise.any(some.map((each) => each.ready()));
