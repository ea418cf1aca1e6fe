import { DELTA_BATCH_SIZE } from '#functions/deltas/handler.ts';
import { EVICT_BATCH_SIZE } from '#functions/evict/handler.ts';
import { NODES_PER_MIB } from '#shared/aws/environment.ts';
import { RULES_MAX_AGE_MS } from '#shared/clusters/rulebook.ts';
import { RESYNC_MS } from '#shared/eviction/facts.ts';
import { clusterName } from '#shared/eviction/identity.ts';
import { taintedKeys } from '#shared/store/items.ts';
import type { Constants } from './constants.ts';
import type { Counts, Partition } from './counted-fleet.ts';
import { each } from './counts.ts';
import { QUOTAS, type Quota } from './quotas.ts';
import type { Fleet, Scenario } from './scenarios.ts';
import { idleCores, loadOf, type Settings } from './settings.ts';

/** One thing that a fleet uses, and how much of it there is. */
export interface Resource {
  readonly what: string;
  readonly unit: string;
  readonly use: number;
  readonly limit: number;
  /** The page that says so; absent: it is a setting of the stack. */
  readonly source?: string;
  /** What to do when it is used up. */
  readonly remedy: string;
  /** There is more of it minutes later, by itself: it delays, and does not decide how much can be done. */
  readonly passing?: true;
}

export interface ModelInput {
  readonly fleet: Fleet;
  readonly settings: Settings;
  readonly scenario: Scenario;
  readonly constants: Constants;
}

/** A call of DynamoDB or SQS takes milliseconds of a single digit (https://aws.amazon.com/dynamodb/): ten at the most. */
const CALL_SECONDS = 0.01;
/** As all functions have it. */
const FUNCTION_GB = 0.5;
/** For so long pods count down that have the tolerations every pod is given. */
const TOLERATED_SECONDS = 300;
/** A cluster's address and CA are asked of EKS again by each process after so long. */
const DESCRIPTION_SECONDS = 600;
/** How long an API server takes to answer, on average. */
const ANSWER_SECONDS = 0.05;
/** A table on demand takes twice what it took before; after so long it has got used to that. */
const DOUBLING_SECONDS = 1_800;
/** Keys in the index under which a cluster's tainted nodes stand, and as many for its history. */
const SHARDS = taintedKeys(clusterName('any')).length;
/** `pk`, `sk`, `clusterKey` and `clusterSort` of a registration. */
const REGISTRATION_KEYS_BYTES = 110;
/** Relays read the registry that often (`REGISTRY_POLL_MS`). */
const REGISTRY_SECONDS = 10;
/** Within so long the guards of all clusters trip, where all of them do. */
const GUARDS_SECONDS = 10;
/** A relay that is replaced is to hear from its clusters within so long. */
const LISTED_WITHIN_SECONDS = 60;
/** Watches of single nodes' pods in a cluster; beyond, one serves all. */
const POD_WATCHES = 100;
const MIB_WITH_LARGE_HEAP = 15 * 1024;

/** How often things happen, in a second. */
export interface Rates {
  readonly tainted: number;
  readonly resynced: number;
  readonly cleared: number;
  /** All that is asked of AWS for them. */
  readonly counts: Counts;
}

/** What a fleet asks for in a second beyond what it does anyway. */
export function ratesOf({ fleet, scenario, constants }: ModelInput): Rates {
  const { counts } = constants;
  const tainted = scenario.tainted(fleet);
  const cleared = scenario.cleared(fleet);
  const resynced = (scenario.standing(fleet) * 1000) / RESYNC_MS;
  const times = (of: Counts, by: number) => each(of, of, (value) => value * by);
  const plus = (a: Counts, b: Counts) => each(a, b, (one, other) => one + other);
  const perNode = plus(counts.tainted.perNode, times(counts.tainted.perPod, fleet.pods));
  const all = plus(
    times(perNode, tainted),
    plus(times(counts.resynced, resynced), times(counts.cleared, cleared)),
  );
  return { tainted, resynced, cleared, counts: all };
}

/** Read and write units that relays and `heartbeat` take in a minute while nothing happens. */
export function idleUnitsOf({ clusters }: Fleet, relays: number, { counts }: Constants) {
  const { idle } = counts;
  const above = idle.findIndex((each) => each.relays >= relays);
  const upper = idle[above < 0 ? idle.length - 1 : above];
  const lower = idle[Math.max(0, (above < 0 ? idle.length - 1 : above) - 1)];
  if (!upper || !lower) throw new Error('nothing was counted while nothing happened');
  const part = upper.relays === lower.relays ? 0 : (relays - lower.relays) / (upper.relays - lower.relays);
  const between = (of: 'readsOfCluster' | 'readsOfRelay') => lower[of] + (upper[of] - lower[of]) * part;
  return {
    reads: clusters * between('readsOfCluster') + relays * between('readsOfRelay'),
    writes: clusters * upper.writesOfCluster,
  };
}

/** All resources, as far as they are used at the worst moment. */
export function resourcesOf(input: ModelInput): readonly Resource[] {
  const rates = ratesOf(input);
  return [
    ...relayResources(input, rates),
    ...queueResources(input, rates),
    ...tableResources(input, rates),
  ].concat(functionResources(input, rates), clusterResources(input, rates));
}

const withQuota = ({ value, source }: Quota) => ({ limit: value, source });

function relayResources(input: ModelInput, rates: Rates): readonly Resource[] {
  const { fleet, settings, scenario, constants } = input;
  const { relay, storm } = constants;
  const { relayCount, relayMemoryMiB } = settings;
  const clusters = fleet.clusters / relayCount;
  const nodes = clusters * fleet.nodes;
  // Pods are followed from the taint of their node until they are gone.
  const counting = Math.min(scenario.standing(fleet), rates.tainted * TOLERATED_SECONDS) / relayCount;
  const heap =
    relay.heapMb.base +
    nodes * relay.heapMb.perNode +
    clusters * relay.heapMb.perCluster +
    counting * fleet.pods * storm.heapMbPerPod;
  const cores = Math.min(1, settings.relayCpu / 1024);
  const heapMiB = Math.min(relayMemoryMiB / 2, relayMemoryMiB < MIB_WITH_LARGE_HEAP ? 2_048 : 4_096);
  const watches = 1 + Math.min(POD_WATCHES, scenario.standing(fleet) / fleet.clusters);
  return [
    {
      what: 'a relay’s budget',
      unit: 'nodes',
      use: loadOf(fleet) / relayCount,
      limit: relayMemoryMiB * NODES_PER_MIB,
      remedy: 'more memory for each relay (`taintward:relayMemoryMiB`), or more relays',
    },
    {
      what: 'a relay’s heap, with the pods that count down',
      unit: 'MB',
      use: heap,
      limit: heapMiB,
      source: 'https://github.com/v8/v8/blob/main/src/heap/heap.cc',
      remedy:
        'more relays; V8 takes half of a task’s memory, 2 GB at the most, or 4 GB from 15 GB on, whatever `taintward:relayMemoryMiB` says',
    },
    {
      what: 'a relay’s processor',
      unit: 'cores',
      use:
        idleCores(fleet, relayCount, constants) +
        (rates.tainted * storm.cpuSeconds + rates.resynced * storm.cpuSecondsOfResync) / relayCount,
      limit: cores,
      remedy:
        'more relays; a relay has no use for more than one vCPU. Until then it tells of nodes as fast as it can, the clusters in turn',
    },
    {
      what: 'listing all anew, when a relay is replaced',
      unit: 's',
      use:
        (relay.listCpuSeconds.base +
          nodes * relay.listCpuSeconds.perNode +
          clusters * relay.listCpuSeconds.perCluster) /
        cores,
      limit: LISTED_WITHIN_SECONDS,
      remedy: 'more relays, or more of a vCPU for each',
    },
    {
      what: 'a relay’s connections',
      unit: 'sockets',
      use: clusters * watches,
      ...withQuota(QUOTAS.openFiles),
      remedy: 'more relays',
    },
  ];
}

function queueResources({ settings }: ModelInput, { counts }: Rates): readonly Resource[] {
  const deltas = counts.nodeDeltas.messages;
  return [
    {
      what: 'node-deltas: calls of an action',
      unit: 'a second',
      use: Math.max(counts.nodeDeltas.sends, counts.nodeDeltas.receives, counts.nodeDeltas.deletes),
      ...withQuota(QUOTAS.fifoCalls),
      remedy:
        'nothing: relays and event sources batch more the more there is; small regions can have the quota raised',
    },
    {
      what: 'node-deltas: calls for one node (message group)',
      unit: 'a second',
      use: deltas === 0 ? 0 : 1,
      ...withQuota(QUOTAS.fifoGroupCalls),
      remedy: 'nothing: a relay sends a node’s deltas one after the other',
    },
    {
      what: 'node-deltas: in flight',
      unit: 'messages',
      use: Math.min(deltas * CALL_SECONDS * 10, settings.deltaConcurrency * DELTA_BATCH_SIZE),
      ...withQuota(QUOTAS.fifoInFlight),
      remedy: 'nothing: no more are received than functions take at a time',
    },
    {
      what: 'evictions-due: in flight',
      unit: 'messages',
      use: Math.min(counts.due.messages, settings.evictConcurrency * EVICT_BATCH_SIZE),
      ...withQuota(QUOTAS.standardInFlight),
      remedy: 'nothing: timers wait as delayed messages, which are not in flight',
    },
  ];
}

function tableResources(input: ModelInput, rates: Rates): readonly Resource[] {
  const { fleet, settings, scenario, constants } = input;
  const { counts } = rates;
  const idle = idleUnitsOf(fleet, settings.relayCount, constants);
  const [reads, writes] = [counts.reads + idle.reads / 60, counts.writes + idle.writes / 60];
  const at = (partition: Partition) => counts.at[partition] ?? { reads: 0, writes: 0 };
  const perCluster = (amount: number) => amount / fleet.clusters;
  const processes = processesOf(input, rates);
  const busy =
    Math.min(processes.delta, settings.deltaConcurrency) +
    Math.min(processes.evict, settings.evictConcurrency);
  const node = each(
    constants.counts.tainted.perNode,
    constants.counts.tainted.perPod,
    (a, b) => a + b * fleet.pods,
  );
  const trips = scenario.lasts ? fleet.clusters / GUARDS_SECONDS : 0;
  const passing = scenario.lasts ? ({ passing: true } as const) : {};
  // It has got used to what the fleet does anyway, and doubles as something goes on.
  const doublings = Math.floor((scenario.lasts?.(fleet) ?? 0) / DOUBLING_SECONDS);
  const atOnce = (fresh: number, anyway: number) =>
    Math.max(fresh, (scenario.lasts ? 2 : 0) * anyway) * 2 ** doublings;
  return [
    {
      what: 'table: writes from one moment to the next',
      unit: 'units a second',
      use: writes,
      limit: atOnce(settings.warmWrites, idle.writes / 60),
      ...passing,
      remedy:
        '`taintward:warmWrites`; until then writes are throttled and tried again, and a table doubles what it takes within 30 minutes',
    },
    {
      what: 'table: writes',
      unit: 'units a second',
      use: writes,
      ...withQuota(QUOTAS.tableUnits),
      remedy:
        'have the quota of the table raised (Service Quotas), or deploy a second stack with half of the clusters',
    },
    {
      what: 'table: reads from one moment to the next',
      unit: 'units a second',
      use: reads,
      limit: atOnce(QUOTAS.newTableReads.value, idle.reads / 60),
      source: QUOTAS.newTableReads.source,
      ...passing,
      remedy:
        'start relays one after the other: a table doubles what it takes within 30 minutes; fewer and larger relays',
    },
    {
      what: 'table: reads',
      unit: 'units a second',
      use: reads,
      ...withQuota(QUOTAS.tableUnits),
      remedy:
        'fewer and larger relays, since every relay looks at every lease; then have the quota raised, or deploy a second stack',
    },
    {
      what: 'index: writes',
      unit: 'units a second',
      use: at('index tainted').writes + at('index history').writes,
      limit: settings.warmWrites,
      remedy: '`taintward:warmWrites`, which holds for the index, too',
    },
    {
      what: 'one shard of a cluster’s tainted nodes in the index',
      unit: 'writes a second',
      use: perCluster(at('index tainted').writes) / SHARDS,
      ...withQuota(QUOTAS.partitionWrites),
      remedy: 'nothing: the table’s own limit comes first',
    },
    {
      what: 'one node’s partition, as its pods are scheduled',
      unit: 'writes a second',
      use: rates.tainted === 0 ? 0 : (node.at.node?.writes ?? 0),
      ...withQuota(QUOTAS.partitionWrites),
      remedy: 'nothing: a node has no more pods',
    },
    {
      what: 'the item of the fleet’s stop',
      unit: 'reads a second',
      use: Math.min(at('fleet').reads, (busy * 1000) / RULES_MAX_AGE_MS) + settings.relayCount / 4,
      ...withQuota(QUOTAS.partitionReads),
      remedy: 'fewer functions at a time: each process reads it once in 0.7 s',
    },
    {
      what: 'one cluster’s lease',
      unit: 'reads a second',
      use: perCluster(at('lease').reads) + idle.reads / 60 / fleet.clusters,
      ...withQuota(QUOTAS.partitionReads),
      remedy: 'fewer and larger relays',
    },
    {
      what: 'the registry’s key in the index',
      unit: 'reads a second',
      use:
        (settings.relayCount * ((fleet.clusters * REGISTRATION_KEYS_BYTES) / 4096) * 0.5) / REGISTRY_SECONDS,
      ...withQuota(QUOTAS.partitionReads),
      remedy: 'fewer and larger relays',
    },
    {
      what: 'the audit’s key in the index, when all guards trip',
      unit: 'writes a second',
      use: trips,
      ...withQuota(QUOTAS.partitionWrites),
      remedy: 'nothing: relays try again until it is written, and hold evictions meanwhile',
    },
  ];
}

/** How many processes of functions work at a time, if there are as many. */
function processesOf({ fleet, constants }: ModelInput, { tainted, counts }: Rates) {
  const { counts: measured, computing } = constants;
  return {
    delta: counts.nodeDeltas.messages * measured.resynced.tableCalls * CALL_SECONDS,
    evict: (tainted * fleet.pods * computing) / FUNCTION_GB,
  };
}

function functionResources(input: ModelInput, rates: Rates): readonly Resource[] {
  const { settings, fleet } = input;
  const { counts } = rates;
  const { delta, evict } = processesOf(input, rates);
  const standing =
    2 * Math.min(delta, settings.deltaConcurrency) + Math.min(evict, settings.evictConcurrency);
  return [
    {
      what: 'node-delta at a time',
      unit: 'processes',
      use: delta,
      limit: settings.deltaConcurrency,
      remedy: '`taintward:deltaConcurrency`, up to 1,000',
    },
    {
      what: 'evict at a time',
      unit: 'processes',
      use: evict,
      limit: settings.evictConcurrency,
      remedy:
        '`taintward:evictConcurrency`, up to 1,000; until then evictions come late by as much as they take longer',
    },
    {
      what: 'Lambda: invocations at a time in the account',
      unit: 'processes',
      use: standing,
      limit: settings.lambdaConcurrency,
      source: QUOTAS.lambdaConcurrency.source,
      remedy: 'have the quota raised (Service Quotas)',
    },
    {
      what: 'Lambda: growth of an event source within a minute',
      unit: 'processes',
      use: Math.min(evict, settings.evictConcurrency),
      ...withQuota(QUOTAS.eventSourceGrowth),
      passing: true,
      remedy: 'nothing: a minute later there are 300 more',
    },
    {
      what: 'Scheduler: schedules made, if all pods tolerated more than 15 minutes',
      unit: 'a second',
      use: rates.tainted,
      ...withQuota(QUOTAS.createSchedule),
      remedy: 'have the quota raised; until then deltas are tried again',
    },
    {
      what: 'Scheduler: schedules that fire, likewise',
      unit: 'a second',
      use: rates.tainted,
      ...withQuota(QUOTAS.schedulesFired),
      remedy: 'have the quota raised; until then they fire late, and two minutes of that are in hand',
    },
    {
      what: 'Scheduler: schedules that stand, likewise',
      unit: 'schedules',
      use: input.scenario.standing(fleet),
      ...withQuota(QUOTAS.schedules),
      remedy: 'have the quota raised',
    },
    {
      what: 'EventBridge: PutEvents, with `taintward:eventBus`',
      unit: 'a second',
      use: counts.notices / 10,
      ...withQuota(QUOTAS.putEvents),
      remedy:
        'have the quota raised; what the bus does not take is lost with a word in the log, and stands in the history',
    },
    {
      what: 'Secrets Manager: reads, where clusters are reached by kubeconfig',
      unit: 'a second',
      use: Math.min(
        rates.tainted,
        (Math.min(evict, settings.evictConcurrency) * fleet.clusters) / DESCRIPTION_SECONDS,
      ),
      ...withQuota(QUOTAS.getSecretValue),
      remedy: 'nothing',
    },
  ];
}

function clusterResources({ fleet, constants }: ModelInput, rates: Rates): readonly Resource[] {
  const { perNode, perPod } = constants.counts.tainted;
  const requests = (perNode.apiRequests + perPod.apiRequests * fleet.pods) * (rates.tainted / fleet.clusters);
  return [
    {
      what: 'one cluster’s API server: requests of `evict` at a time',
      unit: 'requests',
      use: requests * ANSWER_SECONDS,
      ...withQuota(QUOTAS.apiServerInFlight),
      remedy:
        'a `rate` in the cluster’s policy, or fewer functions at a time; it says 429 when it has enough, and is asked later',
    },
  ];
}

/** Read units that one look at everything takes, as the console and `taintward status` look. */
export const lookUnits = ({ fleet, scenario }: ModelInput): number =>
  scenario.standing(fleet) + (fleet.clusters * SHARDS) / 2;

/** The calls of EKS for clusters' addresses in a second: AWS says of no quota, so it is no resource with a limit. */
export function describeClusterCalls(input: ModelInput): number {
  const rates = ratesOf(input);
  const { fleet, settings } = input;
  const processes = Math.min(processesOf(input, rates).evict, settings.evictConcurrency);
  return (
    Math.min(rates.tainted, (processes * fleet.clusters) / DESCRIPTION_SECONDS) +
    fleet.clusters / DESCRIPTION_SECONDS
  );
}

/** The resource that is used most, of what there is of it and will be. */
export function first(resources: readonly Resource[]): Resource {
  const [most] = resources
    .filter(({ passing }) => !passing)
    .sort((a, b) => b.use / b.limit - a.use / a.limit);
  if (!most) throw new Error('there are no resources');
  return most;
}
