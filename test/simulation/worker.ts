import { parentPort, workerData } from 'node:worker_threads';
import type { ClimateName } from './climates.ts';
import { shrink } from './shrink.ts';
import type { SimulationOptions } from './simulate.ts';
import { sweep } from './sweep.ts';

/** What a worker is asked for, one thing at a time. */
export type Asked =
  | { readonly seeds: readonly number[]; readonly climates: readonly ClimateName[] }
  | { readonly shrink: number; readonly climate: ClimateName };

/** What it plays histories with but for their climate. */
export type Common = Omit<SimulationOptions, 'climate' | 'fault' | 'foretold'>;

const common: Common = workerData;

// Of the errors of a history nobody asks where they come from, and to keep that of each takes its time.
Error.stackTraceLimit = 0;

parentPort?.on('message', async (asked: Asked) => {
  const answer =
    'seeds' in asked
      ? await sweep(asked.seeds, asked.climates, common)
      : await shrink(asked.shrink, { ...common, climate: asked.climate });
  parentPort?.postMessage(answer);
});
