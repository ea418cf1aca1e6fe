import { setTimeout as delay } from 'node:timers/promises';
import { type BenchOptions, type Figure, inTime, type Scenario } from '../figure.ts';
import { RelayProcess } from '../relay-process.ts';
import { SyntheticServer } from '../synthetic-server.ts';

const NODES = 5_000;
const SETTLE_MS = 10_000;
const IDLE_MS = 20_000;
/** The memory is the same for any number of pods, within 5 %. */
const AIM_MB = 110;

async function idle(pods: number, report: (figure: Figure) => void, options: BenchOptions): Promise<void> {
  await using server = await SyntheticServer.start({ c0: { nodes: NODES, podsPerNode: pods / NODES } });
  await using relay = new RelayProcess({ clusters: server.relayed('c0') });
  const size = `${NODES.toLocaleString('en')} nodes, ${pods.toLocaleString('en')} pods`;
  const synced = await relay.synced(options.capMs);
  const { process } = relay;
  const syncCpu = { what: `CPU from start to synced, ${size}`, unit: 's' } as const;
  report(inTime(syncCpu, synced === undefined ? undefined : process.cpuSeconds, options));
  const notYet = synced === undefined ? 'not synced, still growing' : undefined;
  await delay(SETTLE_MS);
  await server.counts('c0');
  const cpuBefore = process.cpuSeconds;
  const samples: number[] = [];
  for (const end = Date.now() + IDLE_MS; Date.now() < end; await delay(1_000)) samples.push(process.rssMb);
  const cpu = ((process.cpuSeconds - cpuBefore) / IDLE_MS) * 100_000;
  const { heapMb } = await relay.query('memory');
  const note = `heap ${heapMb.toFixed(0)} MB, peak ${process.peakMb.toFixed(0)} MB`;
  report({
    what: `resident, ${size}, idle`,
    value: Math.max(...samples),
    unit: 'MB',
    aim: AIM_MB,
    note: notYet === undefined ? note : `${notYet}; ${note}`,
  });
  report(inTime({ what: `CPU, ${size}, idle`, unit: '% of a core' }, notYet ? undefined : cpu, options));
  const requests = await server.counts('c0');
  const aboutPods = Object.entries(requests).filter(([what]) => what.startsWith('pods'));
  report({
    what: `requests for pods, ${size}, idle`,
    value: aboutPods.reduce((sum, [, count]) => sum + count, 0),
    unit: 'requests',
    aim: 0,
    ...(notYet === undefined ? {} : { note: notYet }),
  });
}

export const residentAtManyPods: Scenario = {
  about: 'memory and CPU while nothing happens but what kubelets report: 150,000 pods',
  run: (report, options) => idle(150_000, report, options),
};

export const residentAtAMillionPods: Scenario = {
  about: 'the same with 1,000,000 pods',
  run: (report, options) => idle(1_000_000, report, options),
};
