import { setTimeout as delay } from 'node:timers/promises';
import { RelayProcess } from '#test/bench/relay/relay-process.ts';
import { SyntheticServer } from '#test/bench/relay/synthetic-server.ts';
import { machine, writeMeasured } from './measured.ts';

/** Fleets of one relay; the difference between two tells what a node takes, or a cluster. */
const FEW = { clusters: 1, nodes: 500 };
const NODES = { clusters: 1, nodes: 20_000 };
const CLUSTERS = { clusters: 20, nodes: 25 };
const PODS_PER_NODE = 30;
const SYNCED_WITHIN_MS = 120_000;
const SETTLE_MS = 15_000;
const IDLE_MS = 40_000;

type Fleet = typeof FEW;

/** What one relay takes of the machine, after it has listed everything and while kubelets report. */
async function idle(fleet: Fleet) {
  const names = Array.from({ length: fleet.clusters }, (_, index) => `c${index}`);
  const size = { nodes: fleet.nodes, podsPerNode: PODS_PER_NODE };
  await using server = await SyntheticServer.start(Object.fromEntries(names.map((name) => [name, size])));
  await using relay = new RelayProcess({ clusters: server.relayed(...names) });
  if ((await relay.synced(SYNCED_WITHIN_MS)) === undefined)
    throw new Error('The relay did not come up in time.');
  const { process } = relay;
  const listCpuSeconds = process.cpuSeconds;
  await delay(SETTLE_MS);
  const cpuBefore = process.cpuSeconds;
  const samples: number[] = [];
  for (const end = Date.now() + IDLE_MS; Date.now() < end; await delay(1_000)) samples.push(process.rssMb);
  const { heapMb } = await relay.ask('memory');
  const cpu = (process.cpuSeconds - cpuBefore) / (IDLE_MS / 1000);
  return { listCpuSeconds, residentMb: Math.max(...samples), peakMb: process.peakMb, heapMb, cpu };
}

const few = await idle(FEW);
const nodes = await idle(NODES);
const clusters = await idle(CLUSTERS);
const [moreNodes, moreClusters] = [NODES.nodes - FEW.nodes, CLUSTERS.clusters - FEW.clusters];
const rate = (of: keyof typeof few) => {
  const perNode = (nodes[of] - few[of]) / moreNodes;
  return { perNode: Math.max(0, perNode), perCluster: Math.max(0, (clusters[of] - few[of]) / moreClusters) };
};
writeMeasured('relay', {
  by: 'npm run scale:measure -- relay',
  ...machine(),
  residentMb: { base: few.residentMb, ...rate('residentMb') },
  peakMb: { base: few.peakMb, ...rate('peakMb') },
  heapMb: { base: few.heapMb, ...rate('heapMb') },
  listCpuSeconds: { base: few.listCpuSeconds, ...rate('listCpuSeconds') },
  idleCores: { base: few.cpu, ...rate('cpu') },
});
