import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { promisify } from 'node:util';
import { z } from 'zod';
import { ControllerManager, DEFAULT_REQUESTS_PER_SECOND } from '#test/cluster/rig/controller-manager.ts';
import { CONTEXT, Stage } from '#test/cluster/rig/stage.ts';
import { tolerates } from '#test/cluster/rig/tolerations.ts';
import { until } from '#test/cluster/rig/until.ts';
import type { PodLife } from '#test/cluster/rig/witness.ts';

const ROOT = join(import.meta.dirname, '../..');
const NODES = 5;
const PODS_OF_NODE = 20;
/** The pods are due at different times. */
const SECONDS = [2, 4, 6, 8, 10];

const Compared = z.object({
  both: z.array(z.object({ pod: z.string(), builtInAt: z.string(), oursAt: z.string() })),
  builtInOnly: z.array(z.unknown()),
  oursOnly: z.array(z.unknown()),
});

let stage: Stage;
let builtIn: ControllerManager;

before(async () => {
  stage = await Stage.open();
});
after(async () => {
  await builtIn?.stop();
  await stage.close();
});

test('compares a hundred evictions of the built-in controller with its own in observe mode', async (t) => {
  const { cluster } = stage;
  const policy = stage.write('observe.yaml', 'mode: observe\nguard: off\n');
  const stateDir = stage.newStateDir();
  const nodes = await Promise.all(Array.from({ length: NODES }, (_, index) => cluster.addNode(`n${index}`)));
  const pods: PodLife[] = [];
  for (const [place, node] of nodes.entries()) {
    const added = Array.from({ length: PODS_OF_NODE }, (_, index) =>
      cluster.addPod(node, `p${place}-${index}`, {
        tolerations: [tolerates('x', SECONDS[index % SECONDS.length] ?? 0)],
      }),
    );
    pods.push(...(await Promise.all(added)));
  }
  await stage.start({ stateDir, policy });
  builtIn = await ControllerManager.evictingAt(DEFAULT_REQUESTS_PER_SECOND);
  const before = await builtIn.deletions();
  await Promise.all(nodes.map((node) => cluster.taint(node, { key: 'x' })));
  await until('the built-in controller has evicted them all', () =>
    pods.every(({ evictedAt }) => evictedAt !== undefined),
  );
  await builtIn.untilDeleted(before + pods.length);

  const taintward = async (...args: readonly string[]) => {
    const command = [
      'functions/cli/main.ts',
      '--state-dir',
      stateDir,
      'history',
      CONTEXT,
      '--compare',
      ...args,
    ];
    return (await promisify(execFile)(process.execPath, command, { cwd: ROOT })).stdout;
  };
  const compared = await until('all are compared', async () => {
    const found = Compared.parse(JSON.parse(await taintward('-o', 'json')));
    return found.both.length === pods.length && found;
  });
  assert.deepEqual([compared.builtInOnly, compared.oursOnly], [[], []]);
  for (const { builtInAt, oursAt } of compared.both) {
    // Kubernetes reports the deletion of a pod in whole seconds, and each controller may see a taint before the other.
    assert.ok(Date.parse(builtInAt) >= Date.parse(oursAt) - 3_000, `${builtInAt} ${oursAt}`);
  }
  const shown = await taintward();
  t.diagnostic(shown.trimEnd().split('\n').at(-1) ?? '');
  for (const line of shown.split('\n').slice(0, 6)) t.diagnostic(line);
});
