import { CLIMATES, type Climate, type ClimateName } from './climates.ts';
import { type Simulated, type SimulationOptions, simulate } from './simulate.ts';
import { brokenBy } from './sweep.ts';

/** A history that still breaks the promise, shortened as far as possible. */
export interface Shrunk {
  readonly options: SimulationOptions & { readonly climate: ClimateName; readonly governed: boolean };
  readonly history: Simulated;
  /** The broken promise. */
  readonly fault: string;
}

/** The features that a climate may lack, with the values that remove them. */
const QUIETER: Partial<Climate> = {
  trouble: 0,
  death: 0,
  conflict: 0,
  duplicate: 0,
  dropped: 0,
  spells: 0,
  relayChanges: 0,
  gap: 0,
  blackouts: 0,
  unregistered: 0,
  neighbour: false,
  episodes: 1,
  nodes: 1,
  mostPods: 1,
  apiMs: 80,
  watchLagMs: 150,
  callsAtOnce: 48,
  pageItems: 1000,
  ownWatches: 100,
  streamedLists: true,
};

/** The most histories that are played to shorten one. */
const TRIES = 150;

/**
 * Removes everything from a history that is not needed to break the same promise: features of its climate, owners, and the
 * actions of users, nodes and relays. `undefined`: the history breaks no promise.
 */
export async function shrink(
  seed: number,
  options: SimulationOptions & { readonly climate: ClimateName },
): Promise<Shrunk | undefined> {
  const first = await attempt(seed, options);
  if (!first) return undefined;
  let best = first;
  let tries = TRIES;
  const broken = brokenBy(best.fault);
  const improve = async (change: Partial<SimulationOptions>): Promise<boolean> => {
    tries -= 1;
    const found = await attempt(seed, { ...best.options, ...change }, broken);
    if (found) best = found;
    return found !== undefined;
  };
  if (best.options.governed) await improve({ governed: false });
  for (const [name, value] of Object.entries(QUIETER)) {
    const { climate, changed } = best.options;
    const now = { ...CLIMATES[climate], ...changed };
    if (Reflect.get(now, name) !== value) await improve({ changed: { ...changed, [name]: value } });
  }
  for (let size = Math.ceil(best.history.planned / 2); size >= 1 && tries > 0; size = halved(size)) {
    for (let from = 0; from < best.history.planned && tries > 0; from += size) {
      const out = new Set(best.options.leftOut);
      const numbers = Array.from({ length: size }, (_, index) => from + index).filter(
        (number) => number < best.history.planned && !out.has(number),
      );
      if (numbers.length > 0) await improve({ leftOut: [...out, ...numbers].sort((a, b) => a - b) });
    }
  }
  return best;
}

const halved = (size: number): number => (size === 1 ? 0 : Math.ceil(size / 2));

/** Plays a history; `undefined`: it keeps that promise. */
async function attempt(
  seed: number,
  options: SimulationOptions & { readonly climate: ClimateName },
  promise?: string,
): Promise<Shrunk | undefined> {
  const history = await simulate(seed, options);
  const fault = history.faults.find((each) => promise === undefined || brokenBy(each) === promise);
  return fault === undefined
    ? undefined
    : { options: { ...options, governed: history.governed }, history, fault };
}

/** Returns the part of a history's story that concerns the fault, up to the fault, line by line. */
export function storyOf({ history, fault }: Shrunk): readonly string[] {
  const named = new Set(fault.match(/\bc\d\.p\d+\.\d+|\bn\d+\b/g) ?? []);
  for (const line of history.story) {
    const [, uid = '', node = ''] = /^\S+ pod uid=(\S+) node=(\S+)/.exec(line) ?? [];
    if (named.has(uid)) named.add(node);
  }
  const concerns = (line: string): boolean => {
    const about = line.match(/\bc\d\.p\d+\.\d+|\bn\d+\b/g) ?? [];
    return named.size === 0 || about.length === 0 || about.some((name) => named.has(name));
  };
  const brokenAt = history.story.findIndex((line) => line.endsWith(` broken what=${fault}`));
  return history.story.slice(0, brokenAt + 1).filter(concerns);
}

/** Returns the command that replays the history. */
export function replayOf(seed: number, { climate, governed, changed, leftOut }: Shrunk['options']): string {
  const settings = Object.entries(changed ?? {}).map(([name, value]) => `${name}=${value}`);
  return [
    `npm run simulate -- --seed ${seed} --climate ${climate} --governed ${governed ? 'yes' : 'no'}`,
    ...(settings.length > 0 ? [`--set ${settings.join(',')}`] : []),
    ...(leftOut && leftOut.length > 0 ? [`--without ${spans(leftOut)}`] : []),
    '--story',
  ].join(' ');
}

/** Returns numbers as ranges: 1,2,3,7 as 1-3,7. */
function spans(numbers: readonly number[]): string {
  const found: [number, number][] = [];
  for (const number of numbers) {
    const last = found.at(-1);
    if (last && last[1] === number - 1) last[1] = number;
    else found.push([number, number]);
  }
  return found.map(([from, to]) => (from === to ? String(from) : `${from}-${to}`)).join(',');
}
