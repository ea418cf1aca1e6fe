import { randomUUID } from 'node:crypto';
import { Registry } from 'prom-client';
import { localUser } from '#shared/access/local-user.ts';
import { UnknownClusterError } from '#shared/access/registered-clusters.ts';
import { parseDueMessage } from '#shared/aws/due-message.ts';
import type { ManagedClusters } from '#shared/engine/clusters/managed-clusters.ts';
import {
  type ClusterState,
  type ProbeAddress,
  type ProbedState,
  startProbeServer,
} from '#shared/engine/clusters/probe-server.ts';
import { applyDeltas } from '#shared/engine/decide/apply-deltas.ts';
import { announce } from '#shared/engine/evict/announce.ts';
import { CheckedAccess } from '#shared/engine/evict/checked-access.ts';
import { type EvictDeps, evictNode } from '#shared/engine/evict/evict-node.ts';
import { prometheusEvictionMetrics, standingMetrics } from '#shared/engine/evict/eviction-metrics.ts';
import { LaterEvents } from '#shared/engine/evict/later-events.ts';
import { ReportingStore } from '#shared/engine/evict/reporting-store.ts';
import { tryAgain } from '#shared/engine/evict/try-again.ts';
import type { News } from '#shared/engine/news.ts';
import { Relay } from '#shared/engine/watch/relay.ts';
import { relayMetrics } from '#shared/engine/watch/relay-metrics.ts';
import { RulesWatch } from '#shared/engine/watch/rules-watch.ts';
import type { ClusterName, NodeRef } from '#shared/eviction/identity.ts';
import type { Rules } from '#shared/eviction/policy.ts';
import type { ServiceClusterView, ServiceView } from '#shared/operations/fleet/service-view.ts';
import { EmbeddedRateLimiter } from '#shared/state/embedded-rate-limiter.ts';
import type { Fault } from '#shared/state/fault.ts';
import { leaseEpochs } from '#shared/state/lease.ts';
import { Operator } from '#shared/state/operator.ts';
import { allRulesReader, rulesReader } from '#shared/state/rules-store.ts';
import type { ServiceState } from '#shared/state/service-state.ts';
import type { MatchOptions } from '#shared/taints/taint.ts';
import type { Log } from '#shared/telemetry/log.ts';
import { type Backoff, backoffMs } from '#shared/time/backoff.ts';
import { systemClock, systemStopwatch } from '#shared/time/clock.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import { pause } from '#shared/time/pause.ts';
import { VERSION } from '#shared/version.ts';
import { Decisions } from './decisions.ts';
import { Evictions } from './evictions.ts';
import { ownProver } from './own-prover.ts';
import { type ChosenPolicies, StartPolicies } from './start-policies.ts';
import { tellCountdowns } from './tell-countdowns.ts';
import { startUpkeep, type Task, type Upkeep } from './upkeep.ts';

/**
 * How often what the store keeps no longer is removed, and all timers are armed anew from it: what TTL does in the
 * cloud. The latter is a net: timers survive on their own.
 */
const UPKEEP_MS = 3_600_000;
/** How often the file of the policy is looked at: what it says is to hold within 5 s. */
const POLICY_FILE_MS = 1_000;
/** How soon it is seen that a policy asks for more than the credentials may do. */
const PERMISSIONS_MS = 2_000;
/** How soon what stands in the store is asked for again by who leads from now on. */
const TAKE_OVER_RETRY: Backoff = { firstMs: 250, longestMs: 5_000 };
/** How soon what operators ask for is begun. */
const ASKED_MS = 5_000;

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
 * The whole service in this process: the relay, the work queues of what is to be decided and of what is due, and the store. Rejects with `StoreError`, `PolicyError`, `OperatorError` or `ProbeAddressError`, whose messages are for
 * the operator.
 */
export async function startLocalService(options: LocalServiceOptions): Promise<LocalService> {
  const { clusters, log, matching, state } = options;
  const { store, leases, rulesStore, history } = state;
  const { apis } = clusters;
  const clock = systemClock;
  const startedAt = clock.now();
  const registry = new Registry();
  const metrics = relayMetrics(registry);
  standingMetrics(registry, store);
  const operator = new Operator({ rulesStore, clock, who: localUser() });
  const names = [...apis.keys()];
  const policies = new StartPolicies(options.policies, names, { operator, rulesStore, clock, log });
  // Who is not alone says nothing before it leads.
  if (!state.leads) await policies.apply();

  const reporting = new ReportingStore(store, (cluster, error) => relay.stored(cluster, error));
  const rulesNow = rulesReader({ rulesStore, matching, clock });
  const laterEvents = new LaterEvents();
  const rates = new EmbeddedRateLimiter(systemStopwatch);
  const evictions = new Evictions({
    look: (ref, failedBefore) => laterEvents.ahead(() => look(ref, evictDeps, failedBefore)),
    tryAgain: (ref, pods) => tryAgain(ref, pods, evictDeps),
    clock,
    log,
  });
  const access = new CheckedAccess({
    clusters: { api: async (cluster) => apis.get(cluster) ?? refuseUnknown(cluster) },
    ...{ rules: rulesNow, clock, log },
  });
  const evictDeps: EvictDeps = {
    ...{ store: reporting, timers: evictions, clock, log, rules: rulesNow },
    ...{ clusters: access, rates, permits: state.permits, laterEvents },
    metrics: prometheusEvictionMetrics(registry),
  };
  const decisions = new Decisions({
    decide: (deltas) =>
      applyDeltas(deltas, {
        ...evictDeps,
        leaseEpoch: leaseEpochs(leases, clock),
        announce: (ref, news) => announceLater(ref, news, evictDeps, laterEvents),
      }),
    ...{ clock, log, metrics },
  });

  const readAll = allRulesReader(rulesStore, matching);
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
    rulesStore,
    leases,
    store,
    history,
    outbox: decisions,
    prover: ownProver(evictDeps),
    clock,
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

  const rearm: Task = { name: 'rearm', everyMs: UPKEEP_MS, run: () => evictions.rearm(store) };
  const tasks: readonly Task[] = [
    { name: 'purge', everyMs: UPKEEP_MS, run: () => state.purge(clock.now()) },
    rearm,
    { name: 'policy-file', everyMs: POLICY_FILE_MS, run: () => policies.reread() },
    // Policies are checked before anything falls due. Not awaited: a cluster that is slow to answer keeps no other task.
    { name: 'rights', everyMs: PERMISSIONS_MS, run: () => names.forEach((name) => void access.api(name)) },
    { name: 'asked', everyMs: ASKED_MS, run: () => beginAsked(state, evictions) },
  ];
  let upkeep: Upkeep | undefined;
  const stopping = new AbortController();
  const lead = async () => {
    await tellCountdowns(store, log);
    await evictions.rearm(store);
    if (stopping.signal.aborted) return;
    upkeep = startUpkeep(tasks, log);
    // What could not be looked at when it was due waits, the longer the more often it was tried.
    state.whenRegained?.(() => upkeep?.now(rearm));
  };
  /** What was missed while another process led is taken up from the store, as soon as that can be read. */
  const takeOver = async () => {
    rates.begin();
    for (let failures = 1; !stopping.signal.aborted; failures++) {
      try {
        await policies.resume();
        governed.resolve();
        return await lead();
      } catch (error) {
        log.error('maintenance.failed', { task: 'take-over', error });
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
      queues: { decisions: decisions.size, evictions: evictions.size },
    }),
    async stop() {
      stopping.abort();
      governed.resolve();
      await upkeep?.stop();
      await relay.stop();
      await rules.stop();
      await decisions.ended();
      await evictions.stop();
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
    [...states].map(([name, state]) => [name, inService(state.kind) ? { kind: 'lease-unavailable' } : state]),
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
          ...(state.kind === 'disconnected' ? { since: state.since } : {}),
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

/** Looks at a node; resolves with when to look again. */
async function look(ref: NodeRef, deps: EvictDeps, failedBefore: boolean): Promise<EpochMs | undefined> {
  const again = await evictNode(ref, deps, failedBefore);
  return again && deps.clock.now() + again.againInSeconds * 1000;
}

/** An Event is a courtesy: what cannot be announced holds no decision up. */
function announceLater(ref: NodeRef, news: News, deps: EvictDeps, later: LaterEvents): Promise<void> {
  const events = news.cancelled.reduce((sum, { pods }) => sum + pods.length, news.countdowns.length);
  return later.post(ref.cluster, events, () =>
    announce(ref, news, deps).catch((reason: unknown) =>
      deps.log.warn('event.enqueue-failed', { ...ref, error: reason }),
    ),
  );
}

/** Begins what operators asked for beside this process. Rejects, once it has begun the rest, for what it cannot read. */
async function beginAsked({ asked }: ServiceState, evictions: Evictions): Promise<void> {
  const failures: unknown[] = [];
  for (const { body } of await asked()) {
    try {
      const message = parseDueMessage(body);
      evictions.retry(message, message.kind === 'retry' ? message.pods : []);
    } catch (error) {
      failures.push(error);
    }
  }
  if (failures.length > 0) throw failures[0];
}

function refuseUnknown(cluster: ClusterName): never {
  throw new UnknownClusterError(
    `cluster ${cluster} is not managed by this process: name its context with --context ${cluster}`,
  );
}
