import { mock, type TestContext } from 'node:test';
import { idleUnits } from '#test/costs/idle-fleet.ts';
import type { Counts } from './counted-fleet.ts';
import { each } from './counts.ts';
import { writeMeasured } from './measured.ts';
import { countWork, type Work } from './work.ts';

/** Told of on their pods, and over before nodes are told of anew. */
const TOLERATED_SECONDS = 60;
const [FEW_PODS, MANY_PODS] = [10, 50];
const NODES = 10;
/** Relays, and for how many minutes they are counted, as for the guide's costs. */
const RELAYS = [
  [1, 10],
  [2, 10],
  [20, 2],
] as const;

/** Calls `count` with what a test has to drive time with. */
async function inDrivenTime<T>(
  count: (context: Pick<TestContext, 'mock' | 'after'>) => Promise<T>,
): Promise<T> {
  const restore: (() => void)[] = [];
  const after = ((undo: () => void) => restore.push(undo)) as TestContext['after'];
  try {
    return await count({ mock, after });
  } finally {
    for (const undo of restore) undo();
    mock.restoreAll();
  }
}

const work = (pods: number, tolerationSeconds: number): Promise<Work> =>
  inDrivenTime((context) => countWork(context, { nodes: NODES, pods, tolerationSeconds }));

/** To four digits, so that the file can be read. */
const short = (counts: Counts): Counts => each(counts, counts, (value) => Number(value.toPrecision(4)));

const few = await work(FEW_PODS, TOLERATED_SECONDS);
const many = await work(MANY_PODS, TOLERATED_SECONDS);
const perPod = each(many.tainted, few.tainted, (a, b) => (a - b) / (MANY_PODS - FEW_PODS));
const perNode = each(few.tainted, perPod, (node, pod) => node - pod * FEW_PODS);
const idle = [];
for (const [relays, minutes] of RELAYS) {
  const one = await inDrivenTime((context) => idleUnits(context, { relays, clusters: 1, minutes }));
  const more = await inDrivenTime((context) => idleUnits(context, { relays, clusters: 3, minutes }));
  const reads = (more.reads - one.reads) / 2;
  idle.push({
    relays,
    readsOfCluster: reads,
    writesOfCluster: (more.writes - one.writes) / 2,
    readsOfRelay: (one.reads - reads) / relays,
  });
}
writeMeasured('counts', {
  by: 'npm run scale:measure -- counts',
  tainted: { perNode: short(perNode), perPod: short(perPod) },
  resynced: short(few.resynced),
  cleared: short(few.cleared),
  idle,
});
