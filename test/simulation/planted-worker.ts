import { readFileSync } from 'node:fs';
import { registerHooks } from 'node:module';
import { parentPort, workerData } from 'node:worker_threads';
import { PLANTED_SOURCES, type PlantedSource } from './planted-sources.ts';

/** A planted defect, and the most histories that are played until it shows. */
export interface Hunt {
  readonly name: string;
  readonly most: number;
}

/** The result of a hunt; `fault` absent: the defect was not noticed. */
export interface Caught {
  readonly histories: number;
  readonly fault?: string;
}

const { name, most }: Hunt = workerData;
const source = PLANTED_SOURCES[name];
if (source) plant(source);
// Import only now, so that the imports load the planted text.
const { simulate } = await import('./simulate.ts');
const { PLANTED_DEFECTS } = await import('./planted-defects.ts');
const { PLANTED_KINDS } = await import('./planted-kinds.ts');
const { HISTORY_KINDS } = await import('./history-kinds.ts');
const shows = source?.shows;
const play = shows && 'kind' in shows ? await HISTORY_KINDS[shows.kind]() : await PLANTED_KINDS[name]?.play();
const defect = PLANTED_DEFECTS[name] ?? (shows && 'climate' in shows ? shows : undefined);
if (!defect && !play) throw new Error(`nobody knows of the defect: ${name}`);
const played = (seed: number) => play?.(seed) ?? simulate(seed, defect);
let caught: Caught = { histories: most };
for (let seed = 0; seed < most; seed++) {
  const [fault] = (await played(seed)).faults;
  if (fault === undefined) continue;
  caught = { histories: seed + 1, fault };
  break;
}
parentPort?.postMessage(caught);

/** Replaces the text of one file when this thread loads it. */
function plant({ file, instead, planted }: PlantedSource): void {
  const url = new URL(`../../${file}`, import.meta.url);
  const places = readFileSync(url, 'utf8').split(instead).length - 1;
  if (places !== 1)
    throw new Error(`${file} has ${places} places to plant a defect in, and not one: ${instead}`);
  registerHooks({
    load: (specifier, context, next) => {
      const loaded = next(specifier, context);
      if (specifier !== url.href) return loaded;
      return { ...loaded, source: String(loaded.source).replace(instead, () => planted) };
    },
  });
}
