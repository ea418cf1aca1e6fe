import { guideRows } from '#test/costs/guide-rows.ts';
import type { Counts } from './counted-fleet.ts';
import { readMeasured } from './measured.ts';

/** What something takes of a relay: by itself, for each node, and for each cluster. */
interface Slope {
  readonly base: number;
  readonly perNode: number;
  readonly perCluster: number;
}

/** `npm run scale:measure -- counts`: of a node's share of the work, and by the minute while nothing happens. */
export interface MeasuredCounts {
  readonly tainted: { readonly perNode: Counts; readonly perPod: Counts };
  readonly resynced: Counts;
  readonly cleared: Counts;
  readonly idle: readonly {
    readonly relays: number;
    readonly readsOfCluster: number;
    readonly writesOfCluster: number;
    readonly readsOfRelay: number;
  }[];
}

/** `npm run scale:measure -- relay`: of one process, on the machine that it names. */
export interface MeasuredRelay {
  readonly on: string;
  readonly machine: string;
  readonly heapMb: Slope;
  readonly listCpuSeconds: Slope;
  readonly idleCores: Slope;
}

/** `npm run scale:measure -- storm`: of one process, while all nodes of a cluster are tainted at once. */
export interface MeasuredStorm {
  readonly on: string;
  readonly machine: string;
  /** Of a core, for a node. */
  readonly cpuSeconds: number;
  /** Of the heap, while its node's pods count down. */
  readonly heapMbPerPod: number;
  /** Of a core, for a node that is told of again. */
  readonly cpuSecondsOfResync: number;
}

/** All that the model knows of the service. */
export interface Constants {
  readonly counts: MeasuredCounts;
  readonly relay: MeasuredRelay;
  readonly storm: MeasuredStorm;
  /** GB-seconds of functions for each pod, the most that was measured of what is deployed. */
  readonly computing: number;
  /** Dollars a month of what is there whatever the fleet is: polls, `heartbeat`, alarms, dashboard, metrics. */
  readonly fixed: Readonly<Record<string, number>>;
}

const FIXED = ["event sources' polls", '`heartbeat`', 'alarms', 'dashboard', 'own metrics'];
/** As the guide's costs have it. */
const PODS_OF_GUIDE = 50;

/** What scripts measured, and what the guide says that was measured of the deployed service. */
export function readConstants(): Constants {
  const rows = guideRows();
  const rowOf = (name: string): readonly string[] => {
    const row = rows.find(([what]) => what === name);
    if (!row)
      throw new Error(`docs/operations.md has no row "${name}" any more: the model of scale reads it`);
    return row;
  };
  const [, , seconds = ''] = rowOf('Lambda: computing');
  const most = Number(/to ([\d.]+) GB-s/.exec(seconds)?.[1]);
  return {
    counts: readMeasured('counts') as MeasuredCounts,
    relay: readMeasured('relay') as MeasuredRelay,
    storm: readMeasured('storm') as MeasuredStorm,
    computing: most / PODS_OF_GUIDE,
    fixed: Object.fromEntries(FIXED.map((name) => [name, Number.parseFloat(rowOf(name).at(-1) ?? '')])),
  };
}
