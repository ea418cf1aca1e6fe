import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import fc from 'fast-check';
import type { Kind, Outcome } from './kind.ts';
import { must } from './refusal.ts';

/** The result of one kind. */
export interface Report {
  readonly kind: string;
  readonly seed: number;
  readonly runs: number;
  readonly accepted: number;
  readonly refused: number;
  readonly seconds: number;
  /** The processor time of the slowest input, in yardsticks. One yardstick reads and writes 1 MB of JSON on this machine. */
  readonly slowest: number;
  /** The growth of the heap in MiB from a tenth of the runs to the last, after garbage collection. */
  readonly grownMebibytes: number;
  /** The maximum memory of this process in MiB. */
  readonly peakMebibytes: number;
  /** The first input that broke something, reduced as far as possible, and the command to run it again. */
  readonly broken?: string;
}

/** The maximum number of yardsticks for an input, unless its kind sets another. */
const MAX_YARDSTICKS = 20;
/** The heap after garbage collection varies a little. */
const MAX_GROWTH_MEBIBYTES = 32;
/** Slowness that does not recur was caused by the garbage collector or the compiler. */
const TIMES = 3;

export interface RunOptions {
  readonly runs: number;
  readonly seed: number;
  /** The path of one input among those of the seed, as a broken one is reported. */
  readonly path?: string;
}

/** Feeds a kind's inputs to its entry points, one after the other, and checks after each that no shared state changed. */
export async function fuzz<Input>(kind: Kind<Input>, { runs, seed, path }: RunOptions): Promise<Report> {
  const yardstickMs = measureYardstick();
  const { mostYardsticks = MAX_YARDSTICKS } = kind;
  const outcomes: Record<Outcome, number> = { accepted: 0, refused: 0 };
  const { inputs, feed, close } = await kind.open();
  const natures = naturesOf();
  const began = performance.now();
  let slowest = 0;
  let isBroken = false;
  let fed = 0;
  let earlyHeap: number | undefined;
  const property = fc.asyncProperty(inputs, async (input) => {
    try {
      const outcome = await inTime(() => feed(input));
      must(naturesOf() === natures, 'it changed the prototype of everything');
      if (isBroken) return;
      outcomes[outcome] += 1;
      fed += 1;
      if (fed === Math.ceil(runs / 10)) earlyHeap = heap();
    } catch (error) {
      isBroken = true;
      throw error;
    }
  });

  async function inTime(work: () => Promise<Outcome>): Promise<Outcome> {
    let least = Number.POSITIVE_INFINITY;
    for (let time = 1; ; time++) {
      const before = process.threadCpuUsage();
      const outcome = await work();
      const { user, system } = process.threadCpuUsage(before);
      least = Math.min(least, (user + system) / 1000 / yardstickMs);
      if (least <= mostYardsticks) {
        slowest = Math.max(slowest, least);
        return outcome;
      }
      must(time < TIMES, `it takes ${least.toFixed(0)} times as long as reading and writing 1 MB of JSON`);
    }
  }

  try {
    const details = await fc.check(property, {
      numRuns: runs,
      seed,
      ...(path === undefined ? {} : { path }),
      // Skipped inputs are not counted, so none may be skipped.
      maxSkipsPerRun: 0,
    });
    const grown = earlyHeap === undefined ? 0 : (heap() - earlyHeap) / 2 ** 20;
    const broken = details.failed
      ? brokenText(kind.name, details)
      : grown > MAX_GROWTH_MEBIBYTES
        ? `The heap grew by ${grown.toFixed(0)} MiB.`
        : undefined;
    return {
      kind: kind.name,
      seed,
      runs: fed,
      ...outcomes,
      seconds: (performance.now() - began) / 1000,
      slowest,
      grownMebibytes: grown,
      peakMebibytes: process.resourceUsage().maxRSS / 1024,
      ...(broken === undefined ? {} : { broken }),
    };
  } finally {
    await close();
  }
}

type Failed = Pick<
  fc.RunDetails<[unknown]>,
  'counterexample' | 'errorInstance' | 'seed' | 'counterexamplePath'
>;

const MAX_SHOWN = 3_000;

function brokenText(
  kind: string,
  { counterexample, errorInstance, seed, counterexamplePath }: Failed,
): string {
  const shown = fc.stringify(counterexample);
  const why = errorInstance instanceof Error ? errorInstance.message : String(errorInstance);
  return [
    why,
    `of ${shown.slice(0, MAX_SHOWN)}`,
    `again: npm run fuzz -- --what ${kind} --seed ${seed} --path ${counterexamplePath}`,
  ].join('\n');
}

/** Counts the properties that built-in objects have from the start. */
const naturesOf = (): string =>
  [Object, Array, String, Number, Function, Map]
    .map(({ prototype }) => Reflect.ownKeys(prototype).length)
    .join();

/** Measures the processor time in milliseconds to read and write 1 MB of JSON, the least of several tries. */
function measureYardstick(): number {
  const text = JSON.stringify(
    Array.from({ length: 10_000 }, (_, n) => ({
      name: `pod-${n}`,
      uid: n,
      labels: { a: 'b', c: 'd' },
      tolerations: [{ key: 'a', seconds: n }],
    })),
  );
  const times = Array.from({ length: 7 }, () => {
    const before = process.threadCpuUsage();
    JSON.stringify(JSON.parse(text));
    const { user, system } = process.threadCpuUsage(before);
    return (user + system) / 1000;
  });
  return Math.max(Math.min(...times), 1);
}

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as () => void;

function heap(): number {
  collect();
  return process.memoryUsage().heapUsed;
}
