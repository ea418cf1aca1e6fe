import { randomUUID } from 'node:crypto';
import { Registry } from 'prom-client';
import { localUser } from '#shared/access/local-user.ts';
import { UnknownClusterError } from '#shared/access/registered-clusters.ts';
import type { ManagedClusters } from '#shared/engine/clusters/managed-clusters.ts';
import {
  type ClusterState,
  type ProbeAddress,
  startProbeServer,
} from '#shared/engine/clusters/probe-server.ts';
import { applyDeltas } from '#shared/engine/decide/apply-deltas.ts';
import { checkedAccess } from '#shared/engine/evict/checked-access.ts';
import { tryAgain } from '#shared/engine/evict/evict-node.ts';
import { prometheusEvictionMetrics, stateMetrics } from '#shared/engine/evict/eviction-metrics.ts';
import { LaterEvents } from '#shared/engine/evict/later-events.ts';
import type { EvictDeps } from '#shared/engine/evict/ports.ts';
import { whyNotEvicting } from '#shared/engine/evict/proofs.ts';
import { reportingStore } from '#shared/engine/evict/reporting-store.ts';
import { STORE_FAILING } from '#shared/engine/watch/cluster-faults.ts';
import type { Prover } from '#shared/engine/watch/ports.ts';
import { Relay } from '#shared/engine/watch/relay.ts';
import { relayMetrics } from '#shared/engine/watch/relay-metrics.ts';
import { RulesWatch } from '#shared/engine/watch/rules-watch.ts';
import type { ClusterName } from '#shared/eviction/identity.ts';
import type { Rules } from '#shared/eviction/policy.ts';
import type { ServiceView } from '#shared/operations/fleet/service-view.ts';
import { EmbeddedPermits } from '#shared/state/embedded-permits.ts';
import { leaseEpochs } from '#shared/state/lease.ts';
import type { Operator } from '#shared/state/operator.ts';
import { allRulesReader, rulesReader } from '#shared/state/rules-store.ts';
import type { ServiceState } from '#shared/state/service-state.ts';
import type { MatchOptions } from '#shared/taints/taint.ts';
import type { Log } from '#shared/telemetry/log.ts';
import { type Backoff, backoffMs } from '#shared/time/backoff.ts';
import { systemClock, systemStopwatch } from '#shared/time/clock.ts';
import { pause } from '#shared/time/pause.ts';
import { VERSION } from '#shared/version.ts';
import { clusterViews } from './cluster-views.ts';
import { announceLater, Decisions } from './decisions.ts';
import { beginRequested, Evictions, handleNode } from './evictions.ts';
import { type ChosenPolicies, StartPolicies } from './start-policies.ts';
import { logCountdowns } from './start-report.ts';
import { startUpkeep, type Task, type Upkeep } from './upkeep.ts';

/**
 * Interval of two tasks: the store removes expired data, as TTL does on AWS, and all timers are armed again
 * from the store. The second is a safety net: timers also survive without it.
 */
export const UPKEEP_MS = 3_600_000;
/** Interval at which the credentials are checked for the permissions that the policy needs. */
const PERMISSIONS_MS = 2_000;
/** Delays after which a new leader reads the store again. */
const TAKE_OVER_RETRY: Backoff = { firstMs: 250, longestMs: 5_000 };
/** Interval at which operators' requests are read. */
export const REQUESTS_MS = 5_000;

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
  /**
   * Resolves when the service starts to act on the store: immediately if it is alone, otherwise when it
   * becomes the leader.
   */
  readonly leading: Promise<void>;
  /** Rejects with `StoreError`. */
  rules(): Promise<ReadonlyMap<ClusterName, Rules>>;
  view(): ServiceView;
  /** Finishes current work, releases the leases, and ends. No timers are lost. */
  stop(): Promise<void>;
}

/**
 * Starts the whole service in this process: the relay, the work queues of decisions and evictions, and the
 * store. Rejects with `StoreError`, `PolicyError`, `OperatorError`, or `ProbeAddressError`, whose messages
 * are for the operator.
 */
export async function startLocalService(options: LocalServiceOptions): Promise<LocalService> {
  const { clusters, log, matching, state } = options;
  const { store, leases, rulesStore, history } = state;
  const { apis } = clusters;
  const clock = systemClock;
  const startedAt = clock.now();
  const registry = new Registry();
  const metrics = relayMetrics(registry);
  stateMetrics(registry, store);
  const operator: Operator = { rulesStore, clock, actor: localUser() };
  const names = [...apis.keys()];
  const { source } = options.policies;
  const policies = new StartPolicies(options.policies, names, { operator, log });
  // A replica among others applies policies only as the leader.
  if (!state.leads) await policies.apply();

  const reporting = reportingStore(store, (cluster, error) => relay.noted(cluster, STORE_FAILING, error));
  const rulesNow = rulesReader({ rulesStore, matching, clock });
  const laterEvents = new LaterEvents();
  const permits = new EmbeddedPermits(systemStopwatch, state.permits);
  const evictions = new Evictions({
    process: (ref, failedBefore) => laterEvents.ahead(() => handleNode(ref, evictDeps, failedBefore)),
    tryAgain: (ref, pods) => tryAgain(ref, pods, evictDeps),
    clock,
    log,
  });
  const access = checkedAccess({
    clusters: { api: async (cluster) => apis.get(cluster) ?? refuseUnknown(cluster) },
    // A service in a cluster manages that cluster only.
    lease: state.leads ? async () => undefined : (cluster) => leases.read(cluster),
    rules: rulesNow,
    clock,
    log,
  });
  const evictDeps: EvictDeps = {
    store: reporting,
    timers: evictions,
    clock,
    log,
    rules: rulesNow,
    clusters: access,
    permits,
    laterEvents,
    metrics: prometheusEvictionMetrics(registry),
  };
  const decisions = new Decisions({
    decide: (deltas) =>
      applyDeltas(deltas, {
        ...evictDeps,
        leaseEpoch: leaseEpochs(leases, clock),
        announce: (ref, news) => announceLater(ref, news, evictDeps, laterEvents),
      }),
    clock,
    log,
    metrics,
  });

  const readAll = allRulesReader(rulesStore, matching);
  const governed = Promise.withResolvers<void>();
  if (!state.leads) governed.resolve();
  const rules = new RulesWatch({
    // The relay must not start before it has the rules. Otherwise, a guard that the policy disables would
    // trip and hold pods for a minute.
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
    // No capacity limit: no other relay can manage these clusters.
    nodeBudget: Infinity,
    otherLeases: async (cluster) => {
      const found = await Promise.all(names.map((name) => name !== cluster && leases.read(name)));
      return found.filter((lease) => typeof lease === 'object');
    },
  });
  const faults = () => new Map([...clusters.faults, ...relay.faults()]);
  const probes = await startProbeServer(options.probes, {
    registry,
    states: () => new Map<ClusterName, ClusterState>([...clusters.states, ...relay.states()]),
    log,
    trips: () => relay.trips(),
    faults,
  });

  const rearm: Task = { name: 'rearm', everyMs: UPKEEP_MS, run: () => evictions.rearm(store) };
  const tasks: readonly Task[] = [
    { name: 'purge', everyMs: UPKEEP_MS, run: () => state.purge(clock.now()) },
    rearm,
    ...(source ? [{ name: 'policy', everyMs: source.everyMs, run: () => policies.follow() }] : []),
    // Check policies before evictions are due. The checks are not awaited, so that a slow cluster doesn't
    // delay other tasks.
    {
      name: 'rights',
      everyMs: PERMISSIONS_MS,
      run: () => names.forEach((name) => void access.api(name).catch(() => undefined)),
    },
    { name: 'asked', everyMs: REQUESTS_MS, run: () => beginRequested(state, evictions) },
  ];
  let upkeep: Upkeep | undefined;
  const stopping = new AbortController();
  const lead = async () => {
    await logCountdowns(store, log);
    await evictions.rearm(store);
    if (stopping.signal.aborted) return;
    upkeep = startUpkeep(tasks, log);
    // A node that could not be handled when it was due waits longer after each attempt. So handle it now.
    state.whenRegained?.(() => upkeep?.now(rearm));
  };
  /** Continues the work that the previous leader left in the store, as soon as the store can be read. */
  const takeOver = async () => {
    permits.begin();
    for (let failures = 1; !stopping.signal.aborted; failures++) {
      try {
        await policies.follow();
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
    // Replicas share one lease. A replica without access must not acquire it, because another replica may
    // have access.
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

function refuseUnknown(cluster: ClusterName): never {
  throw new UnknownClusterError(
    `cluster ${cluster} is not managed by this process: name its context with --context ${cluster}`,
  );
}

/**
 * Proves evictions by a call, in the process that decides and evicts. There, the relay, deciding, and
 * evicting share their dependencies.
 */
export const ownProver = (deps: Pick<EvictDeps, 'rules' | 'store' | 'clusters' | 'clock'>): Prover => ({
  async prove(cluster) {
    const asOf = deps.clock.now();
    const unproven = await whyNotEvicting(cluster, deps);
    return unproven === undefined ? { asOf } : { unproven };
  },
});
