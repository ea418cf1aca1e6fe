import { quantile } from '#test/cluster/rig/figures.ts';
import { type BenchOptions, type Figure, inTime, plural, type Scenario } from '../figure.ts';
import { RelayProcess } from '../relay-process.ts';
import { SyntheticServer } from '../synthetic-server.ts';

const SIZE = { nodes: 5_000, podsPerNode: 30 };
const MAX_RUNS = 3;
/** A measurement that takes longer is not repeated. */
const ENOUGH_MS = 30_000;

async function start(
  { cores, name, aim }: { readonly cores: number; readonly name: string; readonly aim: number },
  report: (figure: Figure) => void,
  options: BenchOptions,
): Promise<void> {
  await using server = await SyntheticServer.start({ c0: SIZE });
  const times: number[] = [];
  const cpu: number[] = [];
  const begunAt = Date.now();
  for (let run = 0; run < MAX_RUNS && Date.now() < begunAt + ENOUGH_MS; run += 1) {
    await using relay = new RelayProcess({ clusters: server.relayed('c0'), cores });
    const synced = await relay.synced(options.capMs);
    times.push(synced ?? Number.POSITIVE_INFINITY);
    cpu.push(relay.process.cpuSeconds);
    if (synced === undefined) break;
  }
  const median = quantile(times, 0.5) / 1000;
  const note = `${cpu.length > 1 ? 'medians of ' : ''}${plural(cpu.length, 'run')}; CPU ${quantile(cpu, 0.5).toFixed(1)} s`;
  const figure = {
    what: `start of the process to synced, 5,000 nodes, 150,000 pods, ${name}`,
    unit: 's',
    aim,
    note,
  } as const;
  report(inTime(figure, Number.isFinite(median) ? median : undefined, options));
}

export const startOnOneCore: Scenario = {
  about: 'from the start of the process to live, one core',
  run: (report, options) => start({ cores: 1, name: 'one core', aim: 2 }, report, options),
};

export const startOnAQuarter: Scenario = {
  about: 'from the start of the process to live, a quarter of a core',
  run: (report, options) => start({ cores: 0.25, name: 'a quarter core', aim: 6 }, report, options),
};
