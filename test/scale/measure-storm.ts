import { setTimeout as delay } from 'node:timers/promises';
import { RelayProcess } from '#test/bench/relay/relay-process.ts';
import { SyntheticServer } from '#test/bench/relay/synthetic-server.ts';
import type { MeasuredRelay } from './constants.ts';
import { machine, readMeasured, writeMeasured } from './measured.ts';

const NODES = 1_000;
const PODS_PER_NODE = 30;
const SYNCED_WITHIN_MS = 120_000;
const TOLD_WITHIN_MS = 900_000;
const SETTLE_MS = 15_000;
const POLL_MS = 500;
/** What it does anyway is taken off. */
const MEASURED = readMeasured('relay') as MeasuredRelay;

/** A relay that follows a cluster all nodes of which are about to be tainted. */
async function beforeStorm(podsPerNode: number) {
  const server = await SyntheticServer.start({ c0: { nodes: NODES, podsPerNode } });
  const relay = new RelayProcess({ clusters: server.relayed('c0') });
  if ((await relay.synced(SYNCED_WITHIN_MS)) === undefined)
    throw new Error('The relay did not come up in time.');
  await delay(SETTLE_MS);
  const told = async (count: number) => {
    for (const end = Date.now() + TOLD_WITHIN_MS; Date.now() < end; await delay(POLL_MS)) {
      if ((await relay.ask('memory')).sent >= count) return;
    }
    throw new Error('The relay did not tell of all nodes in time.');
  };
  const nodes = Array.from({ length: NODES }, (_, node) => node);
  return {
    ...{ relay, told },
    taint: () => server.tell({ kind: 'taint', cluster: 'c0', nodes }),
    async [Symbol.asyncDispose]() {
      await relay[Symbol.asyncDispose]();
      await server[Symbol.asyncDispose]();
    },
  };
}

/** What a node's taint takes, all nodes of a cluster at once, until its delta is queued and while its pods are followed. */
async function tainted() {
  await using storm = await beforeStorm(PODS_PER_NODE);
  const { relay, told } = storm;
  const heapBefore = (await relay.ask('memory')).heapMb;
  const cpuBefore = relay.process.cpuSeconds;
  await storm.taint();
  await told(NODES);
  const cpuSeconds = (relay.process.cpuSeconds - cpuBefore) / NODES;
  await delay(SETTLE_MS);
  const { heapMb } = await relay.ask('memory');
  return { cpuSeconds, heapMbPerPod: (heapMb - heapBefore) / (NODES * PODS_PER_NODE) };
}

/** What telling anew of a node takes that has no pods any more. */
async function resynced() {
  await using storm = await beforeStorm(0);
  const { relay, told } = storm;
  await storm.taint();
  await told(NODES);
  await delay(SETTLE_MS);
  const { sent } = await relay.ask('memory');
  const [cpuBefore, beganAt] = [relay.process.cpuSeconds, Date.now()];
  await told(sent + NODES);
  const { base, perNode } = MEASURED.idleCores;
  const anyway = (base + NODES * perNode) * ((Date.now() - beganAt) / 1000);
  return { cpuSecondsOfResync: Math.max(0, relay.process.cpuSeconds - cpuBefore - anyway) / NODES };
}

writeMeasured('storm', {
  by: 'npm run scale:measure -- storm',
  ...machine(),
  ...(await tainted()),
  ...(await resynced()),
});
