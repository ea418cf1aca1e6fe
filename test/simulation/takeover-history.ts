import { Registry } from 'prom-client';
import { DeltaSender } from '#shared/aws/relay/delta-sender.ts';
import { ProbingProver } from '#shared/aws/relay/probing-prover.ts';
import { ClusterRelay } from '#shared/engine/watch/cluster-relay.ts';
import { Fleet } from '#shared/engine/watch/fleet.ts';
import { PodFollowLimits } from '#shared/engine/watch/follow-pods.ts';
import { relayMetrics } from '#shared/engine/watch/relay-metrics.ts';
import { RulesWatch } from '#shared/engine/watch/rules-watch.ts';
import { clusterName, type NodeName, nodeName } from '#shared/eviction/identity.ts';
import { DEFAULT_POLICY, type Policy } from '#shared/eviction/policy.ts';
import type { KubernetesApi, LivePod, Resource, Takeover } from '#shared/kubernetes/api.ts';
import { ApiError } from '#shared/kubernetes/http/api-error.ts';
import { rulesOf } from '#shared/state/rules-store.ts';
import type { QueueSender } from '#shared/state/sender.ts';
import { type Store, StoreError } from '#shared/state/store.ts';
import { type LiveTaint, NODE_NOT_READY, NODE_UNREACHABLE } from '#shared/taints/taint.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import { CLIMATES, type Climate } from './climates.ts';
import { Disturbances } from './disturbances.ts';
import { SOUND } from './fault.ts';
import type { OtherHistory } from './history-kinds.ts';
import { instead } from './instead.ts';
import { LiveCluster } from './live-cluster.ts';
import { Plans } from './plans.ts';
import { guardPort, queuePort } from './ports.ts';
import { Process } from './process.ts';
import { ProcessClock } from './process-clock.ts';
import { MATCHING, openQueues, type Scene } from './scene.ts';
import { SeededRandom } from './seeded-random.ts';
import { SimulatedApi } from './simulated-api.ts';
import { runFunctions } from './simulated-functions.ts';
import { SimulatedRulesStore } from './simulated-rules-store.ts';
import { SimulatedScheduler } from './simulated-scheduler.ts';
import {
  dynamoStorage,
  type SimulatedStorage,
  type StoragePorts,
  sqliteStorage,
} from './simulated-storage.ts';
import { SimulationClock, withSimulatedTime } from './simulation-clock.ts';
import { Story } from './story.ts';
import { secondsOf, TakeoverJudge } from './takeover-judge.ts';
import { Truth } from './truth.ts';
import { Weather } from './weather.ts';

const CLUSTER = clusterName('c1');
const START_AT: EpochMs = Date.UTC(2026, 0, 1);
const MINUTE_MS = 60_000;
const EPISODE_MS = 20 * MINUTE_MS;
/** The calm time at the end. A clock's offset is remembered for ten minutes. */
const CALM_MS = 12 * MINUTE_MS;
/** The time by which everything exists and the takeover has started. */
const BEGUN_MS = 2 * MINUTE_MS;
const LAPSE_MS = 90_000;
const NODES = 6;
const KEYS = [NODE_NOT_READY, NODE_UNREACHABLE] as const;
const SECONDS = [0, 20, 60, 300] as const;
/** The interval at which the node controller tries to taint a node for eviction. */
const CONTROLLER_MS = 5_000;
const REPLICAS = ['r1', 'r2'] as const;
const MAX_RESTART_MS = 30_000;
/** The chance and the delay of a late answer to acquiring a lease. A lease lasts ten seconds. */
const LATE_TAKE_CHANCE = 0.5;
const LATE_TAKE_MS = [8_000, 14_000] as const;
const METRICS = relayMetrics(new Registry());

/** The amounts by which clocks are set, for a while. Larger differences prevent evictions. */
const SET_MS = [3_000, 25_000] as const;
const FAR_MS = [40_000, 900_000] as const;
/** The durations for which processes are frozen. */
const FROZEN_MS = [5_000, 40_000] as const;

const CLIMATE: Climate = { ...CLIMATES.brief, nodes: NODES, callsAtOnce: 16 };

/** The obstacles that prevent the service from evicting. */
const OBSTACLES = [
  'delta functions are dead',
  'the function that evicts is dead',
  'pods of a node cannot be listed',
  'the delta queues refuse',
  'the guard cannot be read',
  'the guard cannot be written',
  'the lease cannot be written',
  'the record of a node cannot be read',
  'nothing can be stored',
  'deletes are forbidden',
  'clocks of functions are wrong',
  'clocks of relays are wrong',
] as const;
type Obstacle = (typeof OBSTACLES)[number];

/** The obstacles that affect every pod, and that a probe detects although no node is down. */
const OF_ALL: readonly Obstacle[] = [
  'delta functions are dead',
  'the function that evicts is dead',
  'the delta queues refuse',
  'nothing can be stored',
  'deletes are forbidden',
  'clocks of functions are wrong',
];

/** The place where a defect may be planted. */
export interface TakeoverHooks {
  /** Returns a relay's access to the cluster. */
  api(api: KubernetesApi, clock: SimulationClock): KubernetesApi;
}

const NO_FAULT: TakeoverHooks = { api: (api) => api };

/**
 * Plays a history of a cluster with a takeover. Nodes go down and come back, pods become due on them, and two relays hold its
 * lease alternately. Users hold and pause, and sometimes an obstacle prevents the service from evicting. The history is judged by
 * the cluster's observations alone.
 */
export async function playTakeover(seed: number, fault: TakeoverHooks = NO_FAULT): Promise<OtherHistory> {
  const random = new SeededRandom(seed);
  const clock = new SimulationClock(START_AT);
  return withSimulatedTime(clock, random, async () => {
    const history = new TakeoverHistory(clock, random, fault);
    await clock.advanceTo(START_AT + EPISODE_MS + CALM_MS);
    return history.end();
  });
}

class TakeoverHistory {
  readonly #clock: SimulationClock;
  readonly #random: SeededRandom;
  readonly #fault: TakeoverHooks;
  readonly #story: Story;
  readonly #judge: TakeoverJudge;
  readonly #cluster: TakenOverCluster;
  readonly #scene: Scene;
  readonly #rulesStore: SimulatedRulesStore;
  readonly #nodes: readonly [NodeName, ...NodeName[]];
  /** The current obstacles, and the affected node. */
  readonly #obstacles = new Map<Obstacle, NodeName>();
  /** The amount by which wrong clocks are ahead. */
  readonly #wrongMs: number;
  /** The amounts by which clocks are set ahead, by owner. */
  readonly #setMs = { functions: 0, relays: 0 };
  /** The times until which processes are frozen, by owner. */
  readonly #frozenUntil = { functions: 0, relays: 0 };
  /** True if answers are late. */
  readonly #isLate: boolean;
  readonly #down = new Map<NodeName, (typeof KEYS)[number]>();

  constructor(clock: SimulationClock, random: SeededRandom, fault: TakeoverHooks) {
    this.#clock = clock;
    this.#random = random;
    this.#fault = fault;
    this.#story = new Story(clock);
    this.#isLate = random.chance(0.5);
    this.#wrongMs = random.between(...FAR_MS) * (random.chance(0.5) ? 1 : -1);
    const store = random.chance(0.5) ? 'dynamodb' : 'sqlite';
    const climate = { ...CLIMATE, store, late: this.#isLate ? 0.03 : 0 } as const;
    const disturbances = new Disturbances();
    const episode = { from: START_AT, to: START_AT + EPISODE_MS };
    const weather = new Weather(climate, [episode], { clock, random, disturbances });
    const surroundings = { clock, random, weather, disturbances };
    const [first, ...others] = Array.from({ length: NODES }, (_, index) => nodeName(`n${index + 1}`));
    if (!first) throw new Error('there are no nodes');
    this.#nodes = [first, ...others];
    this.#rulesStore = new SimulatedRulesStore([CLUSTER], clock);
    this.#judge = new TakeoverJudge(
      {
        clock,
        lapseMs: LAPSE_MS,
        pods: () => this.#cluster.livePods.values(),
        holds: (pod) => this.#isHeld(pod),
      },
      (what) => this.#story.add('broken', { what }),
    );
    const nothing = () => undefined;
    this.#cluster = new TakenOverCluster(CLUSTER, clock, new Truth(CLUSTER, MATCHING, disturbances), {
      node: (node, taints) =>
        this.#story.add('node', {
          cluster: CLUSTER,
          node,
          taints: taints?.map(({ key, effect }) => `${key}:${effect}`),
        }),
      pod: ({ uid, node, terminating }) =>
        this.#story.add('pod', { uid, node, terminating, tolerations: '' }),
      mark: nothing,
      blocked: nothing,
      deletion: (pod) => {
        this.#story.add('deletion', { uid: pod.uid });
        this.#judge.deleted(pod);
      },
    });
    // The evict function logs these once it has stored them.
    this.#story.onLogged = (event) => {
      if (/^(eviction\.(held|released|canceled)|pod\.(evicted|already-gone))$/.test(event))
        this.#judge.passed();
    };
    this.#cluster.renewed = (at) => {
      this.#story.add('heartbeat', { at });
      this.#judge.renewed(at);
    };
    const storage = this.#obstructedStorage(
      store === 'dynamodb' ? dynamoStorage(surroundings) : sqliteStorage(surroundings),
    );
    const queues = openQueues(surroundings);
    this.#scene = {
      ...surroundings,
      ownClock: () => this.#ownClock('functions'),
      frozenUntil: () => this.#frozenUntil.functions,
      clusters: [this.#cluster],
      storage,
      queues,
      scheduler: new SimulatedScheduler(surroundings, queues.evictionsDue),
      rulesStore: this.#rulesStore,
      plans: new Plans(clock),
      log: this.#story.log,
      story: this.#story,
      judge: {
        watchStore: (found) => found,
        watchPermits: (found) => found,
        leaseTaken: nothing,
        sent: nothing,
        podsRead: nothing,
      },
      fault: {
        ...SOUND,
        store: (found) => this.#obstructed(found),
        api: (api) => this.#obstructedApi(api),
        handler: (handler, queue) => async (event, context) => {
          const isDead = this.#stands(
            queue === 'evictionsDue' ? 'the function that evicts is dead' : 'delta functions are dead',
          );
          if (isDead)
            return {
              batchItemFailures: event.Records.map(({ messageId }) => ({ itemIdentifier: messageId })),
            };
          return handler(event, context);
        },
      },
    };
    void this.#begin();
  }

  #ownClock(whose: 'functions' | 'relays'): ProcessClock {
    const wrongMs = () => (this.#stands(`clocks of ${whose} are wrong`) ? this.#wrongMs : 0);
    return new ProcessClock(this.#clock, this.#random, () => this.#setMs[whose] + wrongMs());
  }

  #setClocks(whose: 'functions' | 'relays', until: EpochMs): void {
    const ms = this.#random.between(...SET_MS) * (this.#random.chance(0.5) ? 1 : -1);
    this.#story.add('clocks.set', { whose, ms, until });
    this.#setMs[whose] = ms;
    this.#clock.setAlarm(until, () => {
      this.#setMs[whose] = 0;
    });
  }

  #freeze(whose: 'functions' | 'relays'): void {
    const until = this.#clock.now() + this.#random.between(...FROZEN_MS);
    this.#story.add('frozen', { whose, until });
    this.#frozenUntil[whose] = until;
  }

  #stands(obstacle: Obstacle): boolean {
    return this.#obstacles.has(obstacle);
  }

  async #begin(): Promise<void> {
    const random = this.#random;
    const { registry } = this.#scene.storage.open;
    await registry.add({
      name: CLUSTER,
      access: { kind: 'local-context', context: 'c1' },
      addedAt: START_AT,
    });
    const policy: Policy = {
      ...DEFAULT_POLICY,
      mode: 'enforce',
      treatAsNoExecute: KEYS,
      guard: { dryRun: false, cluster: { percent: 60, nodes: 4 } },
    };
    this.#rulesStore.setPolicy(CLUSTER, policy);
    let pods = 0;
    for (const node of this.#nodes) {
      this.#cluster.setNode(node, [], 'kubelet');
      for (let count = random.between(1, 3); count > 0; count--) {
        pods += 1;
        const tolerationSeconds = BigInt(random.pick(SECONDS));
        this.#cluster.createPod({
          namespace: 'default',
          name: `p${pods}`,
          app: 'web',
          node,
          tolerations: KEYS.map((key) => ({
            key,
            operator: 'Exists',
            effect: 'NoExecute',
            tolerationSeconds,
          })),
          graceMs: 500,
        });
      }
    }
    this.#cluster.putTakeover(KEYS, LAPSE_MS);
    runFunctions(this.#scene);
    for (const replica of REPLICAS) this.#startRelay(replica);
    this.#plan();
    const control = () => {
      this.#evictBesides();
      this.#judge.review();
    };
    this.#clock.setInterval(CONTROLLER_MS, control);
  }

  #plan(): void {
    const random = this.#random;
    const [from, to] = [START_AT + BEGUN_MS, START_AT + EPISODE_MS];
    const at = (happen: (until: EpochMs) => void, moment = random.between(from, to)) =>
      this.#scene.plans.add(moment, () =>
        happen(Math.min(to, moment + random.between(3 * MINUTE_MS, 15 * MINUTE_MS))),
      );
    for (let count = random.between(2, 5); count > 0; count--)
      at((until) => this.#goDown(random.pick(this.#nodes), until));
    if (random.chance(0.85)) {
      const obstacle = random.pick(OBSTACLES);
      const node = random.pick(this.#nodes);
      const stoodFrom = random.between(from, to - 10 * MINUTE_MS);
      at((until) => this.#obstruct(obstacle, node, until), stoodFrom);
      // An obstacle without pods to evict has no visible effect, so a node goes down.
      at((until) => this.#goDown(node, until), stoodFrom + random.between(0, 2 * MINUTE_MS));
      // A relay reads the guard only once, so restart the relays.
      if (obstacle === 'the guard cannot be read')
        for (const replica of REPLICAS) at(() => this.#relays.get(replica)?.die(), stoodFrom + 1);
      if (obstacle === 'the guard cannot be written')
        for (const member of this.#nodes)
          at((until) => this.#goDown(member, until), stoodFrom + random.between(0, MINUTE_MS));
    }
    if (random.chance(0.4)) at((until) => this.#hold(random.pick(this.#nodes), until));
    if (random.chance(0.2)) at((until) => this.#pause(until));
    for (const whose of ['functions', 'relays'] as const)
      if (random.chance(0.3)) at((until) => this.#setClocks(whose, until));
    for (const whose of ['functions', 'relays'] as const)
      if (random.chance(0.2)) at(() => this.#freeze(whose));
    for (let count = random.between(0, 2); count > 0; count--)
      at(() => this.#relays.get(random.pick(REPLICAS))?.die());
  }

  #obstruct(obstacle: Obstacle, node: NodeName, until: EpochMs): void {
    this.#story.add('obstacle', { obstacle, node, until });
    this.#judge.obstacles.add(obstacle);
    this.#obstacles.set(obstacle, node);
    if (OF_ALL.includes(obstacle)) this.#judge.obstructed();
    this.#clock.setAlarm(until, () => {
      this.#judge.freed();
      this.#story.add('obstacle.over', { obstacle });
      this.#obstacles.delete(obstacle);
    });
  }

  #goDown(node: NodeName, until: EpochMs): void {
    if (this.#down.has(node)) return;
    // A node always goes down for the same reason. If it came back unnoticed and went down for the other reason, a relay could
    // not distinguish that from a swapped taint.
    const key = KEYS[this.#nodes.indexOf(node) % KEYS.length] ?? NODE_NOT_READY;
    this.#down.set(node, key);
    this.#setTaints(node, [{ key, effect: 'NoSchedule', timeAdded: this.#second }]);
    this.#judge.wentDown(node);
    this.#clock.setAlarm(until, () => {
      this.#down.delete(node);
      this.#setTaints(node, []);
      this.#judge.cameBack(node);
    });
  }

  get #second(): EpochMs {
    return Math.floor(this.#clock.now() / 1000) * 1000;
  }

  #setTaints(node: NodeName, taints: readonly LiveTaint[]): void {
    this.#cluster.setNode(node, taints, 'kube-controller-manager');
  }

  /** Sets the NoExecute taint on each node that is down until the API server admits it; then the built-in controller evicts. */
  #evictBesides(): void {
    for (const [node, key] of this.#down) {
      const found = this.#cluster.liveNodes.get(node)?.taints ?? [];
      const letIn = found.find(({ effect }) => effect === 'NoExecute');
      const taint = { key, effect: 'NoExecute', timeAdded: this.#second } as const;
      if (letIn) this.#evictBuiltIn(node, letIn.timeAdded ?? 0);
      else if (!this.#cluster.keepsOut(taint)) this.#setTaints(node, [...found, taint]);
    }
  }

  #evictBuiltIn(node: NodeName, since: EpochMs): void {
    for (const pod of [...this.#cluster.livePods.values()]) {
      const dueAt = since + secondsOf(pod) * 1000;
      if (pod.node === node && !pod.terminating && this.#clock.now() >= dueAt) this.#cluster.terminate(pod);
    }
  }

  #hold(node: NodeName, until: EpochMs): void {
    const hold = {
      id: 'h1',
      target: { kind: 'node', node },
      actor: 'anna',
      at: this.#clock.now(),
      reason: 'because',
    } as const;
    this.#story.add('hold', { node, until });
    this.#rulesStore.setHolds(CLUSTER, (holds) => [...holds, hold]);
    this.#clock.setAlarm(until, () => {
      this.#story.add('release', { node });
      this.#rulesStore.setHolds(CLUSTER, (holds) => holds.filter((each) => each !== hold));
    });
  }

  #pause(until: EpochMs): void {
    this.#story.add('pause', { until });
    const stop = {
      scope: 'cluster',
      actor: 'anna',
      at: this.#clock.now(),
      reason: 'because',
      until,
    } as const;
    this.#rulesStore.setStops(CLUSTER, (stops) => [...stops, stop]);
  }

  /** Reports whether a control or a guard trip keeps a pod. */
  #isHeld({ node }: LivePod): boolean {
    const { orders, guard } = this.#rulesStore.now(CLUSTER);
    const isPaused = orders.stops.some(({ until = Infinity }) => this.#clock.now() < until);
    const isNamed = orders.holds.some(({ target }) => target.kind === 'node' && target.node === node);
    return isPaused || isNamed || guard.trips.length > 0;
  }

  readonly #relays = new Map<string, Process>();

  #startRelay(replica: string): void {
    const scene = this.#scene;
    const clock = this.#clock;
    const own = this.#ownClock('relays');
    const frozenUntil = () => this.#frozenUntil.relays;
    const process = new Process({ ...scene, ownClock: () => own, frozenUntil });
    this.#relays.set(replica, process);
    const { leases, store, history, proofs } = scene.storage.ports(process);
    const holder = `${replica}-${clock.now()}`;
    const outbox = new DeltaSender({
      nodeDeltas: this.#queue(queuePort(process, scene.queues.nodeDeltas, scene)),
      podDeltas: this.#queue(queuePort(process, scene.queues.podDeltas, scene)),
      clock: own,
      log: scene.log,
      metrics: METRICS,
    });
    const guarded = guardPort(process, this.#rulesStore);
    const away = () => new StoreError('the table is away');
    const simulated = new SimulatedApi(this.#cluster, process, scene);
    const api = this.#fault.api(this.#obstructedApi(simulated), clock);
    const relay = new ClusterRelay(CLUSTER, api, {
      rules: new RulesWatch({ readAll: () => this.#readRules(process), clock: own, log: scene.log }),
      rulesStore: {
        read: async (cluster) => {
          if (this.#stands('the guard cannot be read')) throw away();
          return guarded.read(cluster);
        },
        changeGuard: async (...args) => {
          if (this.#stands('the guard cannot be written')) throw away();
          return guarded.changeGuard(...args);
        },
        touchGuard: async (...args) => {
          if (this.#stands('the guard cannot be written')) throw away();
          return guarded.touchGuard(...args);
        },
      },
      leases: instead(leases, {
        take: async (...args) => {
          if (this.#stands('the lease cannot be written')) throw away();
          const taken = await leases.take(...args);
          // Another relay may hold the lease by the time this one receives the answer.
          if (this.#isLate && this.#random.chance(LATE_TAKE_CHANCE))
            await clock.sleep(this.#random.between(...LATE_TAKE_MS));
          return taken;
        },
        renew: async (...args) => {
          if (this.#stands('the lease cannot be written')) throw away();
          return leases.renew(...args);
        },
      }),
      store: this.#obstructed(store),
      history,
      outbox,
      prover: new ProbingProver({
        nodeDeltas: this.#refusing(queuePort(process, scene.queues.nodeDeltas, scene)),
        proofs,
        clock: own,
      }),
      clock: own,
      log: scene.log,
      metrics: METRICS,
      holder,
      fleet: new Fleet({ holder, budget: Number.POSITIVE_INFINITY, stopwatch: () => own.stopwatch() }),
      limits: new PodFollowLimits(),
    });
    this.#story.add('relay.started', { holder });
    relay.start();
    void process.death.then(() => {
      this.#story.add('relay.killed', { holder });
      outbox.stop();
      void relay.stop();
      clock.setAlarm(clock.now() + this.#random.between(1_000, MAX_RESTART_MS), () =>
        this.#startRelay(replica),
      );
    });
  }

  async #readRules(process: Process) {
    const rules = await process.request('store', () => rulesOf(this.#rulesStore.now(CLUSTER), MATCHING));
    return new Map([[CLUSTER, rules]]);
  }

  /** Returns a queue that checks the messages of relays: no relay sends under a lease that another one has taken. */
  #queue(queue: QueueSender): QueueSender {
    const { leases } = this.#scene.storage.open;
    return {
      send: async (messages) => {
        const { epoch } = (await leases.read(CLUSTER)) ?? {};
        for (const { body } of messages) this.#judge.spoke(JSON.parse(body).version.epoch, epoch);
        return this.#refusing(queue).send(messages);
      },
    };
  }

  #refusing(queue: QueueSender): QueueSender {
    return {
      send: async (messages) => {
        if (this.#stands('the delta queues refuse'))
          return messages.map((_, index) => ({ index, reason: 'denied', permanent: false }));
        return queue.send(messages);
      },
    };
  }

  /** Returns a storage whose store rejects proofs whenever it rejects records. */
  #obstructedStorage(storage: SimulatedStorage): SimulatedStorage {
    const mayWrite = () => {
      if (this.#stands('nothing can be stored')) throw new StoreError('the table is away');
    };
    const obstructed = (ports: StoragePorts): StoragePorts => ({
      ...ports,
      proofs: instead(ports.proofs, {
        notedProbe: async (...args) => {
          mayWrite();
          return ports.proofs.notedProbe(...args);
        },
        notedPass: async (...args) => {
          mayWrite();
          return ports.proofs.notedPass(...args);
        },
      }),
    });
    return { ...storage, ports: (process) => obstructed(storage.ports(process)) };
  }

  #obstructed(store: Store): Store {
    const isUnreadable = (node: NodeName) =>
      this.#obstacles.get('the record of a node cannot be read') === node;
    return {
      load: async (ref, ...args) => {
        if (isUnreadable(ref.node)) throw new StoreError(`the record of ${ref.node} cannot be read`);
        return store.load(ref, ...args);
      },
      commit: async (...args) => {
        if (this.#stands('nothing can be stored')) throw new StoreError('the table is away');
        return store.commit(...args);
      },
      end: async (...args) => {
        if (this.#stands('nothing can be stored')) throw new StoreError('the table is away');
        return store.end(...args);
      },
      taintedNodes: (cluster) => readable(store.taintedNodes(cluster), isUnreadable),
    };
  }

  #obstructedApi(api: KubernetesApi): KubernetesApi {
    const forbidden = (what: string) => new ApiError(`${what} is forbidden`, 403, 'Forbidden');
    const isHidden = (node: NodeName | undefined) =>
      this.#obstacles.get('pods of a node cannot be listed') === node && node !== undefined;
    const pods: Resource<LivePod> = {
      list: async (options) => {
        if (isHidden(options.onNode)) throw forbidden('pods');
        return api.pods.list(options);
      },
      watch: (options) => {
        if (!isHidden(options.onNode)) return api.pods.watch(options);
        return failing(forbidden('pods'));
      },
    };
    const mayDelete = () => {
      if (this.#stands('deletes are forbidden')) throw forbidden('pods');
    };
    return instead(api, {
      pods,
      podsOnNode: async (node, due) => {
        if (isHidden(node)) throw forbidden('pods');
        return api.podsOnNode(node, due);
      },
      allowed: async (right) =>
        (right.verb !== 'delete' || !this.#stands('deletes are forbidden')) && api.allowed(right),
      deletePod: async (...args) => {
        mayDelete();
        return api.deletePod(...args);
      },
      evictPod: async (...args) => {
        mayDelete();
        return api.evictPod(...args);
      },
    });
  }

  end(): OtherHistory {
    this.#judge.judgeEnd();
    this.#scene.storage.close();
    const { faults, tried } = this.#judge;
    return { faults, tried, story: this.#story.lines };
  }
}

/** A cluster that reports the renewals of its takeover. */
class TakenOverCluster extends LiveCluster {
  /** Called with the renewal time when the takeover is renewed. */
  renewed: (at: EpochMs) => void = () => undefined;

  override async renewTakeover(takeover: Takeover, at: EpochMs): Promise<void> {
    await super.renewTakeover(takeover, at);
    this.renewed(at);
  }
}

async function* readable<T extends { readonly node: NodeName }>(
  all: AsyncIterable<T>,
  isUnreadable: (node: NodeName) => boolean,
): AsyncIterable<T> {
  for await (const each of all) if (!isUnreadable(each.node)) yield each;
}

// biome-ignore lint/correctness/useYield: it fails before
async function* failing(error: Error): AsyncGenerator<never> {
  throw error;
}
