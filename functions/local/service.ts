import { randomUUID } from 'node:crypto';
import type { Context, SQSBatchResponse, SQSEvent } from 'aws-lambda';
import { Registry } from 'prom-client';
import { createHandler as createDeltaHandler, DELTA_BATCH_SIZE } from '#functions/deltas/handler.ts';
import { CheckedAccess } from '#functions/evict/checked-access.ts';
import { createHandler as createEvictHandler } from '#functions/evict/handler.ts';
import { DeltaSender } from '#functions/watch-relay/delta-sender.ts';
import {
  type ClusterState,
  type ProbeAddress,
  type ProbedState,
  startProbeServer,
} from '#functions/watch-relay/probe-server.ts';
import { Relay } from '#functions/watch-relay/relay.ts';
import { relayMetrics } from '#functions/watch-relay/relay-metrics.ts';
import { RulesWatch } from '#functions/watch-relay/rules-watch.ts';
import type { Fault } from '#shared/clusters/fault.ts';
import { leaseEpochs } from '#shared/clusters/lease.ts';
import { localUser } from '#shared/clusters/local-user.ts';
import { Operator } from '#shared/clusters/operator.ts';
import { UnknownClusterError } from '#shared/clusters/registered-clusters.ts';
import { allRulesReader, rulesReader } from '#shared/clusters/rulebook.ts';
import type { ClusterName } from '#shared/eviction/identity.ts';
import type { Rules } from '#shared/eviction/policy.ts';
import { QUEUES, type QueueSpec } from '#shared/queues/queue-set.ts';
import type { MatchOptions } from '#shared/taints/taint.ts';
import type { Log } from '#shared/telemetry/log.ts';
import { type Backoff, backoffMs } from '#shared/time/backoff.ts';
import { systemClock, systemStopwatch } from '#shared/time/clock.ts';
import { pause } from '#shared/time/pause.ts';
import { VERSION } from '#shared/version.ts';
import type { DeadLetters } from './dead-letters.ts';
import { startEventSource } from './embedded-event-source.ts';
import { EmbeddedQueue } from './embedded-queue.ts';
import { EmbeddedRateLimiter } from './embedded-rate-limiter.ts';
import { EmbeddedTimers } from './embedded-timers.ts';
import { prometheusEvictionMetrics, standingMetrics } from './eviction-metrics.ts';
import { localContext } from './lambda-context.ts';
import { LaterEvents } from './later-events.ts';
import type { ManagedClusters } from './managed-clusters.ts';
import { ReportingStore } from './reporting-store.ts';
import type { ServiceState } from './service-state.ts';
import type { ServiceClusterView, ServiceView } from './service-view.ts';
import { type ChosenPolicies, StartPolicies } from './start-policies.ts';
import { tellCountdowns } from './tell-countdowns.ts';
import { startUpkeep, type Task, type Upkeep } from './upkeep.ts';

/** Delta handlers wait for the store only. */
const DELTA_FEED = { batchSize: DELTA_BATCH_SIZE, concurrency: 4 };
/** Here all of a batch are of one node, and pods are written together. One by one, they are done before they are seen again. */
const POD_DELTA_FEED = { ...DELTA_FEED, batchSize: 25 };
/** `evict` waits for API servers: many nodes at a time, and none for the others of a batch. */
const EVICT_FEED = { batchSize: 1, concurrency: 64 };
/**
 * How often what the store keeps no longer is removed, and all timers are armed anew from it: what TTL does in the
 * cloud. The latter is a net: timers survive on their own.
 */
const UPKEEP_MS = 3_600_000;
/** How often the file of the policy is looked at: what it says is to hold within 5 s. */
const POLICY_FILE_MS = 1_000;
/** How soon it is seen that a policy asks for more than the credentials may do. */
const RIGHTS_MS = 2_000;
/** How soon what stands in the store is asked for again by who leads from now on. */
const TAKE_OVER_RETRY: Backoff = { firstMs: 250, longestMs: 5_000 };
/** How soon a dead letter goes back to its queue once an operator asked for it, and what else they asked for is begun. */
const REDRIVE_MS = 5_000;

const NOTHING_FAILED: SQSBatchResponse = { batchItemFailures: [] };

type Handler = (event: SQSEvent, context: Context) => Promise<SQSBatchResponse | undefined>;

export interface LocalServiceOptions {
  readonly clusters: Pick<ManagedClusters, 'apis' | 'states' | 'troubles' | 'faults' | 'admit'>;
  readonly state: ServiceState;
  readonly probes: ProbeAddress;
  readonly matching: MatchOptions;
  readonly policies: ChosenPolicies;
  readonly log: Log;
}

export interface LocalService {
  readonly probePort: number;
  /** Resolves when it goes by what stands in the store: at once where it is alone, else when it leads. */
  readonly leading: Promise<void>;
  /** What governs its clusters now; rejects with `StoreError`. */
  rules(): Promise<ReadonlyMap<ClusterName, Rules>>;
  /** What it knows, and nobody else. */
  view(): ServiceView;
  /** Finishes what is in hand, gives the leases up and ends. Nothing timed is lost. */
  stop(): Promise<void>;
}

/**
 * The whole service in this process: the relay, the queues, the Lambda handlers behind their event sources, the
 * store and the timers. Rejects with `StoreError`, `PolicyError`, `OrderError` or `ProbeAddressError`, whose messages are for
 * the operator.
 */
export async function startLocalService(options: LocalServiceOptions): Promise<LocalService> {
  const { clusters, log, matching, state } = options;
  const { store, leases, rulebook, history, deadLetters } = state;
  const { apis } = clusters;
  const clock = systemClock;
  const startedAt = clock.now();
  const registry = new Registry();
  const metrics = relayMetrics(registry);
  standingMetrics(registry, store);
  const operator = new Operator({ rulebook, clock, who: localUser() });
  const names = [...apis.keys()];
  const policies = new StartPolicies(options.policies, names, { operator, rulebook, clock, log });
  // Who is not alone says nothing before it leads.
  if (!state.leads) await policies.apply();

  const queueOf = (spec: QueueSpec) => new EmbeddedQueue({ spec, deadLetters, clock, log });
  const nodeDeltas = queueOf(QUEUES.nodeDeltas);
  const podDeltas = queueOf(QUEUES.podDeltas);
  const evictionsDue = queueOf(QUEUES.evictionsDue);

  const timers = new EmbeddedTimers({ dueQueue: evictionsDue, clock, log });
  const reporting = new ReportingStore(store, (cluster, error) => relay.stored(cluster, error));
  const common = { store: reporting, timers, clock, log, rules: rulesReader({ rulebook, matching, clock }) };
  const depsOn = (queue: EmbeddedQueue) => ({
    ...common,
    leaseEpoch: leaseEpochs(leases, clock),
    dueQueue: evictionsDue,
    visibility: queue,
    deadLetters: deadLetters.sender(queue.spec.name),
  });
  const access = new CheckedAccess({
    clusters: { api: async (cluster) => apis.get(cluster) ?? refuseUnknown(cluster) },
    ...{ rules: common.rules, clock, log },
  });
  const laterEvents = new LaterEvents();
  const evict = createEvictHandler({
    ...depsOn(evictionsDue),
    clusters: access,
    rates: new EmbeddedRateLimiter(),
    permits: state.permits,
    laterEvents,
    metrics: prometheusEvictionMetrics(registry),
  });

  const outbox = new DeltaSender({ nodeDeltas, podDeltas, clock, log, metrics });
  const readAll = allRulesReader(rulebook, matching);
  const governed = Promise.withResolvers<void>();
  if (!state.leads) governed.resolve();
  const rules = new RulesWatch({
    // A relay sees nothing before it hears what governs: a guard that the policy forbids would trip, and hold pods for a minute.
    readAll: async (clusters) => {
      await governed.promise;
      return readAll(clusters);
    },
    clock,
    log,
  });
  const relay = new Relay({
    rules,
    rulebook,
    leases,
    store,
    history,
    outbox,
    clock,
    stopwatch: systemStopwatch,
    log,
    metrics,
    holder: randomUUID(),
    // There is nobody to leave a cluster to.
    nodeBudget: Infinity,
  });
  const states = () => new Map([...clusters.states, ...relay.states()]);
  const faults = () => new Map([...clusters.faults, ...relay.faults()]);
  const probed = (): ReadonlyMap<ClusterName, ProbedState> =>
    state.reachesLeases?.() === false ? leaseless(states()) : states();
  const probes = await startProbeServer(options.probes, {
    ...{ registry, states: probed, log },
    trips: () => relay.trips(),
    faults,
  });

  const feed = (queue: EmbeddedQueue, handler: Handler, sizes: typeof DELTA_FEED) => {
    const context = localContext(queue.spec.functionTimeoutSeconds);
    const reporting = async (event: SQSEvent) => (await handler(event, context)) ?? NOTHING_FAILED;
    return startEventSource({ queue, handler: reporting, log, ...sizes });
  };
  const sources = [
    feed(nodeDeltas, createDeltaHandler(depsOn(nodeDeltas)), DELTA_FEED),
    feed(podDeltas, createDeltaHandler(depsOn(podDeltas)), POD_DELTA_FEED),
    feed(evictionsDue, (event, context) => laterEvents.ahead(() => evict(event, context)), EVICT_FEED),
  ];
  const queues = [nodeDeltas, podDeltas, evictionsDue];
  const rearm: Task = { name: 'rearm', everyMs: UPKEEP_MS, run: () => timers.rearm(store) };
  const tasks: readonly Task[] = [
    { name: 'purge', everyMs: UPKEEP_MS, run: () => state.purge(clock.now()) },
    { name: 'purge-dead-letters', everyMs: UPKEEP_MS, run: () => deadLetters.purge() },
    rearm,
    { name: 'policy-file', everyMs: POLICY_FILE_MS, run: () => policies.reread() },
    // Policies are checked before anything falls due. Not awaited: a cluster that is slow to answer keeps no other task.
    { name: 'rights', everyMs: RIGHTS_MS, run: () => names.forEach((name) => void access.api(name)) },
    { name: 'redrive', everyMs: REDRIVE_MS, run: () => redrive(deadLetters, queues) },
    { name: 'asked', everyMs: REDRIVE_MS, run: () => sendAsked(state, evictionsDue) },
  ];
  let upkeep: Upkeep | undefined;
  const stopping = new AbortController();
  const lead = async () => {
    await tellCountdowns(store, log);
    await timers.rearm(store);
    if (stopping.signal.aborted) return;
    upkeep = startUpkeep(tasks, log);
    // What could not be looked at when it was due waits, the longer the more often it was tried.
    state.whenRegained?.(() => upkeep?.now(rearm));
  };
  /** What was missed while another process led is taken up from the store, as soon as that can be read. */
  const takeOver = async () => {
    for (let failures = 1; !stopping.signal.aborted; failures++) {
      try {
        await policies.resume();
        governed.resolve();
        return await lead();
      } catch (error) {
        log.error('upkeep.failed', { task: 'take-over', reason: error });
        await pause(backoffMs(failures, TAKE_OVER_RETRY), stopping.signal);
      }
    }
  };
  const leading = state.leads?.then(takeOver) ?? lead();
  if (!state.leads) await leading;
  clusters.admit(
    (name, api) => relay.add(name, api),
    stopping.signal,
    // Where replicas have one lease, another one may be let in: it is not kept from that.
    state.leads ? undefined : (name) => relay.report(name, () => clusters.faults.get(name) ?? []),
  );

  return {
    probePort: probes.port,
    leading,
    rules: () => readAll(names),
    view: () => ({
      version: VERSION,
      startedAt,
      clusters: clusterViews(clusters, relay, faults()),
      queues: Object.fromEntries(queues.map((queue) => [queue.spec.name, queue.size])),
    }),
    async stop() {
      stopping.abort();
      governed.resolve();
      await upkeep?.stop();
      await relay.stop();
      await rules.stop();
      await timers.stop();
      await Promise.all(sources.map((each) => each.stop()));
      await laterEvents.stop();
      await probes.close();
      state.close();
    },
  };
}

/** Of those that are in service none is, whatever is seen of them. */
function leaseless(states: ReadonlyMap<ClusterName, ClusterState>): ReadonlyMap<ClusterName, ProbedState> {
  const inService = (kind: ClusterState['kind']): boolean => kind === 'standby' || kind === 'live';
  return new Map(
    [...states].map(([name, state]) => [name, inService(state.kind) ? { kind: 'leaseless' } : state]),
  );
}

function clusterViews(
  { apis, states, troubles }: LocalServiceOptions['clusters'],
  relay: Relay,
  faults: ReadonlyMap<ClusterName, readonly Fault[]>,
): ServiceView['clusters'] {
  const known = relay.clusters();
  const all = new Map<ClusterName, ClusterState>([...states, ...relay.states()]);
  return Object.fromEntries(
    [...all].map(([name, state]): [string, ServiceClusterView] => {
      const { counts, heardAt, tally } = known.get(name) ?? {};
      const why = troubles.get(name);
      return [
        name,
        {
          state: state.kind,
          ...(state.kind === 'deaf' ? { since: state.since } : {}),
          ...(why === undefined ? {} : { why }),
          ...(heardAt === undefined ? {} : { heardAt }),
          breakerOpen: apis.get(name)?.breakerOpen ?? false,
          faults: faults.get(name) ?? [],
          ...(counts ?? { nodes: 0, tainted: 0, pods: 0 }),
          down: tally?.cluster.nodes ?? 0,
          taintedByPeople: tally?.people.nodes ?? 0,
        },
      ];
    }),
  );
}

/** Sends what operators asked for beside this process. */
async function sendAsked(state: ServiceState, evictionsDue: EmbeddedQueue): Promise<void> {
  const messages = (await state.askedDue?.()) ?? [];
  if (messages.length > 0) await evictionsDue.send(messages);
}

/** Sends the dead letters again that an operator asked for; what is not taken is a dead letter as before. */
async function redrive(deadLetters: DeadLetters, queues: readonly EmbeddedQueue[]): Promise<void> {
  for (const letter of deadLetters.takeRedriven()) {
    const { id, queue: name, body, groupId } = letter;
    const queue = queues.find(({ spec }) => spec.name === name);
    const failures = await queue?.send([
      {
        body,
        ...(groupId === undefined ? {} : { groupId }),
        ...(queue?.spec.fifo ? { deduplicationId: `redrive-${id}` } : {}),
      },
    ]);
    if (failures?.length !== 0) deadLetters.add(name, letter, letter.reason);
  }
}

function refuseUnknown(cluster: ClusterName): never {
  throw new UnknownClusterError(
    `cluster ${cluster} is not managed by this process: name its context with --context ${cluster}`,
  );
}
