import { Worker } from 'node:worker_threads';
import { type Area, PLANTED_DEFECTS } from './planted-defects.ts';
import { PLANTED_KINDS } from './planted-kinds.ts';
import { PLANTED_SOURCES } from './planted-sources.ts';
import type { Caught, Hunt } from './planted-worker.ts';

/** All planted defects: between the service's parts and their ports, and in its own text. */
export const PLANTED: readonly { readonly name: string; readonly area: Area }[] = Object.entries({
  ...PLANTED_SOURCES,
  ...PLANTED_DEFECTS,
  ...PLANTED_KINDS,
}).map(([name, { area }]) => ({ name, area }));

/** The most histories that are played until a defect shows. */
export const UNTIL_CAUGHT = 100;

/** Plays histories of the service with a defect until it shows, in a thread of its own. */
export function hunt(hunted: Hunt): Promise<Caught> {
  const worker = new Worker(new URL('planted-worker.ts', import.meta.url), { workerData: hunted });
  const { promise, resolve, reject } = Promise.withResolvers<Caught>();
  worker.once('message', resolve);
  worker.once('error', reject);
  return promise.finally(() => worker.terminate());
}
