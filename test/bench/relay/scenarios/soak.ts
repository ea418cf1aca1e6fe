import { setTimeout as delay } from 'node:timers/promises';
import { type Figure, inTime, type Scenario } from '../figure.ts';
import { RelayProcess } from '../relay-process.ts';
import { SyntheticServer } from '../synthetic-server.ts';

const SIZE = { nodes: 1_000, podsPerNode: 30 };
const POD_EVENTS_PER_SECOND = 50;
/** The limits of the number of tainted nodes, below and above the threshold for watches of their own. */
const MIN_TAINTED = 20;
const MAX_TAINTED = 160;
/** The time for which the number rises, and then falls. */
const TIDE_MS = 5 * 60_000;
const STEP_MS = 1_000;
/** Steps from one disturbance to the next. */
const CUT_EVERY = 50;
const FORGET_EVERY = 310;
const REFUSE_EVERY = 170;
const REFUSE_STEPS = 10;
const REPORTS = 24;
/** The share of the time in which memory may still grow to its size. */
const WARM_UP = 0.25;
/** The growth of memory at the end of a run that is tolerated; more counts as growth. */
const GROWTH = 0.05;
const MB_OF_CHANCE = 5;

interface Sample {
  readonly hours: number;
  readonly rssMb: number;
  readonly heapMb: number;
}

export const soak: Scenario = {
  about: 'hours of taints, pods, cut watches, 410s and refusals: memory does not grow',
  onlyByName: true,
  async run(report, options) {
    await using server = await SyntheticServer.start({ c0: SIZE });
    await using relay = new RelayProcess({ clusters: server.relayed('c0') });
    if ((await relay.synced(options.capMs)) === undefined) {
      return report(inTime({ what: 'soak: growth of memory', unit: 'MB/h' }, undefined, options));
    }
    await relay.query('record-no-more');
    const samples: Sample[] = [];
    const churning = disturb(server, Date.now() + options.soakMs, relay);
    const begunAt = Date.now();
    for (let report = 0; report < REPORTS && !relay.process.ended; report += 1) {
      // The lowest of several samples is used, because garbage comes and goes.
      const lowest = await sampled(relay, options.soakMs / REPORTS, begunAt);
      samples.push(lowest);
      process.stderr.write(
        `${(lowest.hours * 60).toFixed(1)} min: resident ${lowest.rssMb.toFixed(0)} MB, heap ${lowest.heapMb.toFixed(0)} MB, ${lowest.sent} deltas\n`,
      );
    }
    await churning;
    const settled = samples.slice(Math.floor(samples.length * WARM_UP));
    report(growth('resident', settled, ({ rssMb }) => rssMb));
    report(growth('heap', settled, ({ heapMb }) => heapMb));
  },
};

/** Samples for a while; returns the lowest of each. */
async function sampled(
  relay: RelayProcess,
  durationMs: number,
  begunAt: number,
): Promise<Sample & { sent: number }> {
  const end = Date.now() + durationMs;
  let [rssMb, heapMb, sent] = [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY, 0];
  do {
    const memory = await relay.query('memory');
    rssMb = Math.min(rssMb, relay.process.rssMb);
    heapMb = Math.min(heapMb, memory.heapMb);
    sent = memory.sent;
    await delay(Math.min(STEP_MS, Math.max(0, end - Date.now())));
  } while (Date.now() < end);
  return { hours: (Date.now() - begunAt) / 3_600_000, rssMb, heapMb, sent };
}

/** Makes all changes to the cluster. */
async function disturb(server: SyntheticServer, untilAt: number, relay: RelayProcess): Promise<void> {
  const cluster = 'c0';
  const tainted: number[] = [];
  const begunAt = Date.now();
  await server.command({ kind: 'churn', cluster, perSecond: POD_EVENTS_PER_SECOND });
  for (let step = 1; Date.now() < untilAt && !relay.process.ended; step += 1) {
    const phase = ((Date.now() - begunAt) / TIDE_MS) % 2;
    const wanted = MIN_TAINTED + (phase < 1 ? phase : 2 - phase) * (MAX_TAINTED - MIN_TAINTED);
    const node = (step * 7) % SIZE.nodes;
    tainted.push(node);
    await server.command({ kind: 'taint', cluster, nodes: [node] });
    const done = tainted.splice(0, Math.max(0, tainted.length - Math.round(wanted)));
    if (done.length > 0) await server.command({ kind: 'untaint', cluster, nodes: done });
    if (step % CUT_EVERY === 0) await server.command({ kind: 'cut-watches', cluster });
    if (step % FORGET_EVERY === 0) await server.command({ kind: 'forget', cluster });
    if (step % REFUSE_EVERY === 0) {
      const refuse = { share: 0.5, status: 429, retryAfterSeconds: 1 };
      await server.command({ kind: 'faults', cluster, faults: { refuse } });
    }
    if (step % REFUSE_EVERY === REFUSE_STEPS) await server.command({ kind: 'faults', cluster, faults: {} });
    await delay(STEP_MS);
  }
}

/** Returns the slope of a line through the samples, and whether it counts as growth. */
function growth(processName: string, samples: readonly Sample[], mbOf: (sample: Sample) => number): Figure {
  const mean = (numbers: readonly number[]) => numbers.reduce((sum, each) => sum + each, 0) / numbers.length;
  const hours = samples.map((sample) => sample.hours);
  const values = samples.map(mbOf);
  const [middle, level] = [mean(hours), mean(values)];
  const slope =
    samples.reduce((sum, sample) => sum + (sample.hours - middle) * (mbOf(sample) - level), 0) /
    samples.reduce((sum, sample) => sum + (sample.hours - middle) ** 2, 0);
  const span = (hours.at(-1) ?? 0) - (hours[0] ?? 0);
  const allowed = Math.max(level * GROWTH, MB_OF_CHANCE) / span;
  const from = values[0]?.toFixed(0);
  return {
    what: `soak: growth of ${processName} after the first quarter`,
    value: slope,
    unit: 'MB/h',
    aim: allowed,
    note: `${from} to ${values.at(-1)?.toFixed(0)} MB in ${(span * 60).toFixed(0)} min`,
  };
}
