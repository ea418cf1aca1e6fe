import { parentPort, workerData } from 'node:worker_threads';
import type { ClimateName } from './climates.ts';
import { shrink } from './shrink.ts';
import type { SimulationOptions } from './simulate.ts';
import { sweep } from './sweep.ts';

/** A request to a worker; workers handle one at a time. */
export type Question =
  | { readonly seeds: readonly number[]; readonly climates: readonly ClimateName[] }
  | { readonly shrink: number; readonly climate: ClimateName };

/** The options of all histories except for their climate. */
export type Common = Omit<SimulationOptions, 'climate' | 'fault' | 'forecastPod'>;

const common: Common = workerData;

// Stack traces of a history's errors are never read, and recording them takes time.
Error.stackTraceLimit = 0;

parentPort?.on('message', async (question: Question) => {
  const answer =
    'seeds' in question
      ? await sweep(question.seeds, question.climates, common)
      : await shrink(question.shrink, { ...common, climate: question.climate });
  parentPort?.postMessage(answer);
});
