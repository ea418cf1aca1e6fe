import { bundles } from './bundles/bundles.ts';
import { costs } from './costs/costs.ts';
import { deciding } from './deciding/deciding.ts';
import { deadlines } from './eviction/deadlines.ts';
import { inCluster } from './eviction/in-cluster.ts';
import { mass } from './eviction/mass.ts';
import { single } from './eviction/single.ts';
import { relay, relayParts } from './relay/relay.ts';
import type { Scenario } from './scenario.ts';
import { stores } from './stores/stores.ts';

/** Scenarios by their names on the command line, in the order of measurement. */
export const SCENARIOS: Readonly<Record<string, Scenario>> = {
  'mass-1x110': mass({ nodes: 1, podsPerNode: 110 }, 5),
  'mass-100x50': mass({ nodes: 100, podsPerNode: 50 }, 5),
  'mass-1000x30': mass({ nodes: 1000, podsPerNode: 30 }, 3),
  'in-cluster-100x50': inCluster({ nodes: 100, podsPerNode: 50 }, 3),
  'in-cluster-1000x30': inCluster({ nodes: 1000, podsPerNode: 30 }, 2),
  single,
  deadlines,
  deciding,
  relay,
  costs,
  bundles,
  stores,
};

/** Parts of the relay's scenario, by themselves, and the soak, which takes hours. */
export const PARTS: Readonly<Record<string, Scenario>> = relayParts;
