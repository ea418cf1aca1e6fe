import type { WatchedToleration } from '#test/cluster/rig/watched.ts';
import { SeededRandom } from '#test/simulation/seeded-random.ts';

/** The size and the duration of a run, and its disturbed processes. */
export interface Scale {
  readonly seed: number;
  readonly nodes: number;
  readonly podsPerNode: number;
  readonly minutes: number;
  /**
   * The names of the processes that can be killed, of those that can be suspended and resumed, and of those with a
   * clock of their own.
   */
  readonly killed: readonly string[];
  readonly stopped: readonly string[];
  readonly clocked: readonly string[];
}

/**
 * A change of nodes or pods by users or controllers. `draw`, from 0 to 1, selects among the pods that exist by then.
 */
export type Deed =
  | { readonly kind: 'taint'; readonly node: number; readonly key: string; readonly value: string }
  /** The same taint, set again with a time. */
  | { readonly kind: 'stamp'; readonly node: number; readonly key: string; readonly value: string }
  | { readonly kind: 'untaint'; readonly node: number; readonly key: string }
  | { readonly kind: 'tolerate'; readonly draw: number; readonly key: string; readonly seconds: number }
  | { readonly kind: 'delete'; readonly draw: number };

/** The effect of bad weather on its share of the requests to the API server. */
export type Sky = 'throttled' | 'failing' | 'resetting' | 'silent' | 'slow' | 'deaf';

/** A disturbance of processes or of their connections. */
export type Fault =
  | { readonly kind: 'kill'; readonly victim: string; readonly durationMs: number }
  | { readonly kind: 'stop'; readonly victim: string; readonly durationMs: number }
  /** The victim's clock is set wrong, and later right. */
  | { readonly kind: 'clock'; readonly victim: string; readonly aheadMs: number; readonly durationMs: number }
  /** Every connection to the API server breaks, and new ones are rejected for a while. */
  | { readonly kind: 'cut'; readonly durationMs: number }
  | { readonly kind: 'weather'; readonly sky: Sky; readonly share: number; readonly durationMs: number };

/** `at`: milliseconds from the beginning. */
export interface Planned<Act> {
  readonly at: number;
  readonly act: Act;
}

/** All events of a run, except responses and their order, which depend on the machine. */
export interface Plan {
  /** The initial tolerations of the pods of each node. */
  readonly pods: readonly (readonly (readonly WatchedToleration[])[])[];
  readonly deeds: readonly Planned<Deed>[];
  readonly faults: readonly Planned<Fault>[];
  /** The longest limited toleration. */
  readonly longestSeconds: number;
}

export const KEYS = ['disk', 'drain', 'fan', 'kernel', 'memory', 'power'] as const;
const VALUES = ['', 'soon', 'now'] as const;

/** The interval at which a node is tainted; in a shorter run it is tainted twice. */
const TAINTED_EVERY_MS = 240_000;
const STAYS_MS = [1_000, 60_000] as const;
const WITH_ANOTHER = 0.3;
const CHANGES_VALUE = 0.25;
const FLAPS = 0.2;
/**
 * A taint that is removed and set again unobserved counts as one taint, because no observer can distinguish them. The
 * gap is therefore longer than any fault, unless the taint contains its time.
 */
const AWAY_MS = 60_000;
const FLAP_AWAY_MS = [1_500, 5_000] as const;
/** The number per second, for a thousand pods. */
const TOLERATIONS_CHANGED = 0.25;
const DELETED = 0.1;

const BETWEEN_FAULTS_MS = [6_000, 20_000] as const;
const KILLED_MS = [200, 6_000] as const;
const STOPPED_MS = [500, 8_000] as const;
const CUT_MS = [1, 6_000] as const;
/** More than the two tolerated seconds, and less than the error that holds evictions. */
const WRONG_BY_MS = [3_000, 12_000] as const;
const WRONG_MS = [1_000, 15_000] as const;
const CALM_MS = [3_000, 12_000] as const;
const WEATHER_MS = [2_000, 9_000] as const;
const SKIES = ['throttled', 'failing', 'resetting', 'silent', 'slow', 'deaf'] as const;

/** Returns the plan of a seed. The longest limited toleration is a sixth of the run, and at most a minute. */
export function planOf(scale: Scale): Plan {
  const random = new SeededRandom(scale.seed);
  const endAt = scale.minutes * 60_000;
  const longestSeconds = Math.min(60, Math.ceil(scale.minutes * 10));
  const tolerations = new Tolerations(random, longestSeconds);
  const pods = Array.from({ length: scale.nodes }, () =>
    Array.from({ length: scale.podsPerNode }, () => tolerations.list()),
  );
  const deeds = [
    ...Array.from({ length: scale.nodes }, (_, node) => taints(random, node, endAt)).flat(),
    ...podDeeds(random, scale, endAt, longestSeconds),
  ];
  const faults = [...processFaults(random, scale, endAt), ...weather(random, endAt)];
  return { pods, deeds: inOrder(deeds), faults: inOrder(faults), longestSeconds };
}

const inOrder = <Act>(planned: readonly Planned<Act>[]): readonly Planned<Act>[] =>
  planned.toSorted((a, b) => a.at - b.at);

/** Generates tolerations of pods. */
export class Tolerations {
  readonly #random: SeededRandom;
  readonly #longestSeconds: number;

  constructor(random: SeededRandom, longestSeconds: number) {
    this.#random = random;
    this.#longestSeconds = longestSeconds;
  }

  /** Returns the tolerations of one pod: none, all, or each key for some time, in any order and with any duplicates. */
  list(): readonly WatchedToleration[] {
    const random = this.#random;
    if (random.chance(0.2)) return [];
    if (random.chance(0.1)) return [{ operator: 'Exists' }];
    const own = KEYS.filter(() => random.chance(0.7)).map((key) => this.#of(key));
    const again = random.chance(0.3) ? [this.#of(random.pick(KEYS))] : [];
    const all = random.chance(0.2)
      ? [{ operator: 'Exists', effect: 'NoExecute', tolerationSeconds: this.#seconds() }]
      : [];
    return random.chance(0.5) ? [...own, ...again, ...all] : [...again, ...own, ...all];
  }

  #of(key: string): WatchedToleration {
    const random = this.#random;
    const what = random.chance(0.4)
      ? { key, operator: 'Equal', value: random.pick(VALUES) }
      : { key, operator: 'Exists' };
    if (random.chance(0.25)) return { ...what, effect: 'NoExecute' };
    return { ...what, effect: 'NoExecute', tolerationSeconds: this.#seconds() };
  }

  #seconds(): number {
    return this.#random.chance(0.1)
      ? this.#random.between(-1, 0)
      : this.#random.between(1, this.#longestSeconds);
  }
}

/** Returns the taints of one node, one after the other; taints of different keys overlap. */
function taints(random: SeededRandom, node: number, endAt: number): Planned<Deed>[] {
  const deeds: Planned<Deed>[] = [];
  const freeAt = new Map<string, number>();
  const everyMs = Math.min(TAINTED_EVERY_MS, endAt / 2);
  for (let at = random.next() * everyMs; at < endAt; at += everyMs * (0.5 + random.next())) {
    const keys = KEYS.filter((key) => (freeAt.get(key) ?? 0) <= at);
    const first = random.pick(keys);
    const second = random.chance(WITH_ANOTHER) ? random.pick(keys) : undefined;
    for (const key of new Set([first, second])) {
      if (key === undefined) continue;
      const from = key === first ? at : at + random.between(0, 10_000);
      const spell = taintSpell(random, { node, key, from });
      deeds.push(...spell.deeds);
      freeAt.set(key, spell.removedAt + AWAY_MS);
    }
  }
  return deeds.filter((each) => each.at < endAt);
}

/** Returns the deeds of one taint, from its addition until it has been absent for a while. */
function taintSpell(
  random: SeededRandom,
  { node, key, from }: { readonly node: number; readonly key: string; readonly from: number },
): { readonly deeds: readonly Planned<Deed>[]; readonly removedAt: number } {
  const value = random.pick(VALUES);
  // Short and long durations are equally frequent.
  const staysMs = Math.round(STAYS_MS[0] * (STAYS_MS[1] / STAYS_MS[0]) ** random.next());
  const removedAt = from + staysMs;
  const deeds: Planned<Deed>[] = [
    { at: from, act: { kind: 'taint', node, key, value } },
    { at: removedAt, act: { kind: 'untaint', node, key } },
  ];
  if (random.chance(CHANGES_VALUE)) {
    const act = { kind: 'taint', node, key, value: random.pick(VALUES) } as const;
    deeds.push({ at: from + staysMs / 2, act });
  }
  if (!random.chance(FLAPS)) return { deeds, removedAt };
  const backAt = removedAt + random.between(...FLAP_AWAY_MS);
  const awayAt = backAt + random.between(...STAYS_MS) / 2;
  deeds.push({ at: backAt, act: { kind: 'stamp', node, key, value } });
  deeds.push({ at: awayAt, act: { kind: 'untaint', node, key } });
  return { deeds, removedAt: awayAt };
}

function podDeeds(
  random: SeededRandom,
  { nodes, podsPerNode }: Scale,
  endAt: number,
  longestSeconds: number,
): Planned<Deed>[] {
  const thousands = (nodes * podsPerNode) / 1000;
  const times = (perSecond: number) =>
    Array.from({ length: Math.round(perSecond * thousands * (endAt / 1000)) }, () => random.next() * endAt);
  return [
    ...times(TOLERATIONS_CHANGED).map((at): Planned<Deed> => {
      const seconds = random.between(0, longestSeconds);
      return { at, act: { kind: 'tolerate', draw: random.next(), key: random.pick(KEYS), seconds } };
    }),
    ...times(DELETED).map((at): Planned<Deed> => ({ at, act: { kind: 'delete', draw: random.next() } })),
  ];
}

function processFaults(
  random: SeededRandom,
  { killed, stopped, clocked }: Scale,
  endAt: number,
): Planned<Fault>[] {
  const faults: Planned<Fault>[] = [];
  const kinds = [
    'cut',
    ...killed.map(() => 'kill' as const),
    ...stopped.map(() => 'stop' as const),
    ...clocked.map(() => 'clock' as const),
  ] as const;
  const busyUntil = new Map<string, number>();
  for (let at = random.between(1_000, 5_000); at < endAt; at += random.between(...BETWEEN_FAULTS_MS)) {
    const kind = random.pick(kinds) ?? 'cut';
    if (kind === 'cut') {
      faults.push({ at, act: { kind, durationMs: random.between(...CUT_MS) } });
      continue;
    }
    const [victims, [least, most]] = {
      kill: [killed, KILLED_MS] as const,
      stop: [stopped, STOPPED_MS] as const,
      clock: [clocked, WRONG_MS] as const,
    }[kind];
    const victim = random.pick(victims) ?? '';
    const durationMs = random.between(least, most);
    if ((busyUntil.get(victim) ?? 0) > at) continue;
    busyUntil.set(victim, at + durationMs);
    const aheadMs = random.between(...WRONG_BY_MS) * (random.chance(0.5) ? 1 : -1);
    faults.push({
      at,
      act: kind === 'clock' ? { kind, victim, aheadMs, durationMs } : { kind, victim, durationMs },
    });
  }
  return faults;
}

/** Returns one sky after the other, with calm between them. */
function weather(random: SeededRandom, endAt: number): Planned<Fault>[] {
  const faults: Planned<Fault>[] = [];
  let at = random.between(...CALM_MS);
  while (at < endAt) {
    const durationMs = random.between(...WEATHER_MS);
    const share = random.pick([0.1, 0.3, 0.7]);
    faults.push({ at, act: { kind: 'weather', sky: random.pick(SKIES), share, durationMs } });
    at += durationMs + random.between(...CALM_MS);
  }
  return faults;
}

/** Describes a fault in words. */
export function inWords(fault: Fault): string {
  const seconds = `${(fault.durationMs / 1000).toFixed(1)} s`;
  switch (fault.kind) {
    case 'kill':
      return `${fault.victim}: kill -9, back after ${seconds}`;
    case 'stop':
      return `${fault.victim}: stopped for ${seconds}`;
    case 'clock':
      return `${fault.victim}: its clock is ${Math.abs(fault.aheadMs / 1000).toFixed(1)} s ${fault.aheadMs < 0 ? 'behind' : 'ahead'} for ${seconds}`;
    case 'cut':
      return `every connection to the API server cut, none let in for ${seconds}`;
    case 'weather':
      return `${fault.sky}: ${Math.round(100 * fault.share)} % of requests, for ${seconds}`;
    default:
      return fault satisfies never;
  }
}
