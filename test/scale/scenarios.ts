import { QUOTAS } from './quotas.ts';

/** So many clusters, of so many nodes each, of so many pods each. */
export interface Fleet {
  readonly clusters: number;
  readonly nodes: number;
  readonly pods: number;
}

/** What becomes of nodes, at its worst. */
export interface Scenario {
  readonly about: string;
  /** Seconds for which it goes on; absent: always. */
  readonly lasts?: (fleet: Fleet) => number;
  /** Nodes that are tainted in a second. */
  readonly tainted: (fleet: Fleet) => number;
  /** Nodes that are tainted at the end. */
  readonly standing: (fleet: Fleet) => number;
  /** Nodes that lose their taints, or are gone, in a second. */
  readonly cleared: (fleet: Fleet) => number;
}

const DAY_SECONDS = 86_400;
/** A node is drained, dies or is replaced once in it. */
const NODE_LIFE_SECONDS = 30 * DAY_SECONDS;
/** For so long it stays tainted then. */
const GOING_SECONDS = 600;
const ZONES = 3;
/** Something that nobody meant taints all there is. */
const MISTAKE_SECONDS = 600;

const all = ({ clusters, nodes }: Fleet): number => clusters * nodes;
const inZone = ({ nodes }: Fleet): number => nodes / ZONES;

/** By the names that the command line takes. */
export const SCENARIOS = {
  idle: {
    about: 'nothing is tainted',
    tainted: () => 0,
    standing: () => 0,
    cleared: () => 0,
  },
  churn: {
    about: 'every node is drained, dies or is replaced once in 30 days, and is tainted for ten minutes then',
    tainted: (fleet) => all(fleet) / NODE_LIFE_SECONDS,
    standing: (fleet) => (all(fleet) / NODE_LIFE_SECONDS) * GOING_SECONDS,
    cleared: (fleet) => all(fleet) / NODE_LIFE_SECONDS,
  },
  zone: {
    about:
      'a third of the nodes of every cluster are lost; their node controllers taint one of them every 10 s, as they do by default, and policies let the pods go',
    lasts: (fleet) => inZone(fleet) / QUOTAS.nodeEvictionRate.value,
    tainted: ({ clusters }) => clusters * QUOTAS.nodeEvictionRate.value,
    standing: (fleet) => all(fleet) / ZONES,
    cleared: () => 0,
  },
  region: {
    about: 'somebody’s automation taints every node of every cluster within ten minutes, and no guard is on',
    lasts: () => MISTAKE_SECONDS,
    tainted: (fleet) => all(fleet) / MISTAKE_SECONDS,
    standing: all,
    cleared: () => 0,
  },
} as const satisfies Readonly<Record<string, Scenario>>;

export type ScenarioName = keyof typeof SCENARIOS;
