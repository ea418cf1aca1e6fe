import {
  DEFAULT_POLICY,
  type GuardPolicy,
  type HoldTarget,
  type Method,
  type OperatorAction,
  type Policy,
  type Selection,
} from '#shared/eviction/policy.ts';
import type { LivePod } from '#shared/kubernetes/api.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import { type LiveCluster, zoneOf } from './live-cluster.ts';
import type { Scene } from './scene.ts';
import type { SeededRandom } from './seeded-random.ts';
import type { SimulatedRulesStore } from './simulated-rules-store.ts';
import { SECONDS, TAINT_KEYS } from './simulated-user.ts';

const MINUTE_MS = 60_000;
/**
 * The controls in one episode. Where nodes are full, each control reevaluates hundreds of pods, and short episodes have no room
 * for more.
 */
const ORDERS = { few: 2, usual: 8, paced: 5 };
const FULL_PODS = 8;
const SHORT_MS = 5 * MINUTE_MS;
/** The longest time after an episode until the guard is released. */
const LATEST_RELEASE_MS = 30 * MINUTE_MS;
/** The longest durations of a control, as often as they are drawn. A control lasts no longer than three episodes. */
const MAX_MS = [3_000, MINUTE_MS, 5 * MINUTE_MS, 20 * MINUTE_MS, 60 * MINUTE_MS] as const;
/**
 * The chance that an owner interferes just when a pod is marked, and the longest delay. Interferences are at most as many as
 * controls.
 */
const INTERFERENCE_CHANCE = 0.1;
const INTERFERENCE_MS = 1_500;
const DRAINS = [0.5, 2, 10, 50] as const;
const { guard: DEFAULT_GUARD } = DEFAULT_POLICY;
/** The thresholds of too many nodes; where nodes are few, no default is ever reached. */
const GUARDS: readonly [GuardPolicy, ...GuardPolicy[]] = [
  DEFAULT_GUARD,
  { dryRun: false },
  { dryRun: false, cluster: { percent: 30, nodes: 2 }, zone: { percent: 50, nodes: 2 } },
  {
    dryRun: false,
    cluster: { percent: 60, nodes: 2 },
    zone: { percent: 60, nodes: 1 },
    customTaints: { percent: 50, nodes: 2, windowMs: 10 * MINUTE_MS },
  },
];
/** The methods of eviction; where budgets are respected, they block some pods. */
const METHODS: readonly [Method, ...Method[]] = [
  { kind: 'delete' },
  { kind: 'evict', timeoutMs: 2 * MINUTE_MS, onTimeout: 'delete' },
  { kind: 'evict', timeoutMs: 10 * MINUTE_MS, onTimeout: 'fail' },
];
/** Pods per second; `NO_RATE` is practically unlimited. */
const RATES = [0.2, 1, 5] as const;
const NO_RATE = 1_000;
/** A guard that watches, but holds no pods. */
const SHADOWED: GuardPolicy = { ...DEFAULT_GUARD, dryRun: true };

/** Applies a control, and returns a function that cancels it. */
type Order = (until: { readonly until?: EpochMs }) => () => void;

/**
 * The owner of a cluster. The owner observes and stops the cluster, and holds and excludes pods. The owner sets the
 * method of eviction, rates, budgets and the guard's thresholds, and cancels all of these, at any time. Some controls expire
 * earlier. Guard holds are released manually, or not.
 */
export class Owner {
  readonly #cluster: LiveCluster;
  readonly #rulesStore: SimulatedRulesStore;
  readonly #scene: Scene;
  readonly #random: SeededRandom;
  readonly #longestMs: readonly number[];
  #orders = 0;
  /** The time by which all controls are canceled. */
  endAt: EpochMs;

  /** `random`: the owner's own random numbers, so that everything else happens as without owners. */
  constructor(cluster: LiveCluster, rulesStore: SimulatedRulesStore, random: SeededRandom, scene: Scene) {
    this.#cluster = cluster;
    this.#rulesStore = rulesStore;
    this.#random = random;
    this.#scene = scene;
    const { clock, weather } = scene;
    this.endAt = clock.now();
    const [first] = weather.episodes;
    // The cluster is in observe mode until the owner sets another mode.
    const enforcedAt = random.chance(0.8) || !first ? clock.now() : random.between(first.from, first.to);
    const [releaseRate, guard, method] = [random.pick(DRAINS), random.pick(GUARDS), random.pick(METHODS)];
    const rates = weather.climate.paced ? this.#limits() : { releaseRate };
    const limits = weather.climate.limited ? { ...rates, ...this.#limitOfWorkloads() } : rates;
    this.#at(enforcedAt, () => this.#decree({ mode: 'enforce', ...limits, guard, method }));
    const { calmMs, episodeMs, mostPods } = weather.climate;
    const usual = mostPods > FULL_PODS || episodeMs <= SHORT_MS ? ORDERS.few : ORDERS.usual;
    const orders = weather.climate.paced ? ORDERS.paced : usual;
    const releasedMs = Math.min(LATEST_RELEASE_MS, calmMs / 2);
    this.#longestMs = MAX_MS.filter((ms) => ms <= 3 * episodeMs);
    for (const { from, to } of weather.episodes) {
      for (let count = 0; count < orders; count++) {
        this.#at(random.between(from, to), () => this.#order());
      }
      if (random.chance(0.5)) this.#at(random.between(from, to + releasedMs), () => this.#releaseGuard());
    }
    let interferences = 0;
    cluster.onMarked = (pod) => {
      if (interferences === orders || !random.chance(INTERFERENCE_CHANCE)) return;
      interferences += 1;
      this.#at(clock.now() + random.between(0, INTERFERENCE_MS), () => this.#order(pod));
    };
  }

  #at(at: EpochMs, happen: () => void): void {
    this.endAt = Math.max(this.endAt, at);
    this.#scene.plans.add(at, happen);
  }

  /** `pod`: the pod that the control is about, if any. */
  #order(pod = this.#anyPod()): void {
    const { clock, story } = this.#scene;
    const random = this.#random;
    const lastsMs = random.between(0, random.pick(this.#longestMs) ?? 0);
    // The control expires, or the owner cancels it, possibly earlier.
    const until = random.chance(0.4) ? { until: clock.now() + random.between(0, lastsMs) } : {};
    const takeBack = this.#draw(pod)(until);
    story.add('ordered', { cluster: this.#cluster.name, ...this.#knownRules() });
    this.#at(clock.now() + lastsMs, () => {
      takeBack();
      story.add('ordered', { cluster: this.#cluster.name, ...this.#knownRules() });
    });
  }

  /** Returns the rates of evictions for histories that test rates. */
  #limits(): Pick<Policy, 'releaseRate' | 'evictionRate'> {
    const random = this.#random;
    return {
      releaseRate: random.pick(DRAINS),
      ...(random.chance(0.6) ? { evictionRate: random.pick(RATES) } : {}),
    };
  }

  /** Returns the limit of evictions for each workload. */
  #limitOfWorkloads(): Pick<Policy, 'maxEvictionsPerWorkload'> {
    const [count, windowMs] = [this.#random.pick([1, 2]), this.#random.pick([5_000, 20_000])];
    return { maxEvictionsPerWorkload: { count, windowMs } };
  }

  #draw(pod: LivePod | undefined): Order {
    const [rulesStore, random] = [this.#rulesStore, this.#random];
    const act = { actor: 'anna', at: this.#scene.clock.now(), reason: 'because' };
    const drawn = random.pick<() => Order>(
      this.#scene.weather.climate.paced
        ? this.#meddling(act, pod)
        : [
            () => () => this.#policyFor({ mode: 'observe' }, { mode: 'enforce' }),
            () => this.#stop(act),
            () => this.#stop(act),
            () => (until) => {
              rulesStore.setFleetStop({ ...act, ...until, scope: 'fleet' });
              return () => rulesStore.setFleetStop();
            },
            () => this.#hold(pod),
            () => this.#hold(pod),
            () => this.#hold(pod),
            () => this.#select('exclude'),
            () => this.#select('exclude'),
            () => this.#select('include'),
            () => () =>
              this.#policyFor({ releaseRate: random.pick(DRAINS) }, { releaseRate: random.pick(DRAINS) }),
            () => () => this.#policyFor({ method: random.pick(METHODS) }, { method: random.pick(METHODS) }),
            () => () => this.#policyFor({ evictionRate: random.pick(RATES) }, { evictionRate: NO_RATE }),
            () => () => this.#budget(),
            () => () =>
              this.#policyFor(
                { tolerationSecondsOverrides: this.#seconds() },
                { tolerationSecondsOverrides: {} },
              ),
            () => () =>
              this.#policyFor({ guard: random.pick([...GUARDS, SHADOWED]) }, { guard: random.pick(GUARDS) }),
          ],
    );
    return drawn();
  }

  /** Returns controls that release many pods at once when they end, or that change the rates. */
  #meddling(act: OperatorAction, pod: LivePod | undefined): readonly [() => Order, ...(() => Order)[]] {
    const random = this.#random;
    return [
      () => this.#stop(act),
      () => this.#stop(act),
      () => this.#hold(pod),
      () => this.#select('exclude'),
      () => () => this.#policyFor({ evictionRate: random.pick(RATES) }, { evictionRate: random.pick(RATES) }),
    ];
  }

  /** A pause is such a stop. Each ends alone, whatever other stops do. */
  #stop(act: OperatorAction): Order {
    const { name } = this.#cluster;
    return (until) => {
      const stop = { ...act, ...until, scope: 'cluster' } as const;
      this.#rulesStore.setStops(name, (stops) => [...stops, stop]);
      return () => this.#rulesStore.setStops(name, (stops) => stops.filter((each) => each !== stop));
    };
  }

  #policyFor(policy: Partial<Policy>, after: Partial<Policy>): () => void {
    this.#decree(policy);
    return () => this.#decree(after);
  }

  #decree(change: Partial<Policy>): void {
    this.#rulesStore.setPolicy(this.#cluster.name, { ...this.#policy, ...change });
  }

  get #policy(): Policy {
    return this.#rulesStore.now(this.#cluster.name).orders.policy?.read ?? DEFAULT_POLICY;
  }

  #hold(pod: LivePod | undefined): Order {
    const { name: cluster } = this.#cluster;
    const random = this.#random;
    if (!pod?.node) return () => () => undefined;
    const { uid, namespace, name, owner, node } = pod;
    const targets: readonly [HoldTarget, ...HoldTarget[]] = [
      { kind: 'pod', namespace, name, uid },
      { kind: 'pod', namespace, name },
      { kind: 'node', node },
      { kind: 'namespace', namespace },
      { kind: 'labels', labels: { matchLabels: { app: 'web' } } },
      { kind: 'zone', zone: zoneOf(node) },
      ...(owner ? [{ kind: 'workload', namespace, owner } as const] : []),
    ];
    this.#orders += 1;
    const id = `h${this.#orders}`;
    const hold = {
      id,
      target: random.pick(targets),
      actor: 'anna',
      at: this.#scene.clock.now(),
      reason: 'because',
    };
    return (until) => {
      this.#rulesStore.setHolds(cluster, (holds) => [...holds, { ...hold, ...until }]);
      return () => this.#rulesStore.setHolds(cluster, (holds) => holds.filter((each) => each.id !== id));
    };
  }

  #select(list: 'exclude' | 'include'): Order {
    const random = this.#random;
    const selection = random.pick<Selection>([
      { namespaces: ['other'] },
      { labels: { matchLabels: { app: 'web' } } },
      { labels: { matchExpressions: [{ key: 'app', operator: 'NotIn', values: ['web'] }] } },
      { annotations: { app: 'web' } },
      { priorityClassNames: ['web', 'system-node-critical'] },
      { ownerKinds: ['ReplicaSet'] },
      { taints: [random.pick(TAINT_KEYS)] },
      { namespaces: ['default'], taints: [random.pick(TAINT_KEYS)] },
    ]);
    return (until) => {
      const added = { ...selection, ...until };
      this.#decreeSelections(list, (before) => [...before, added]);
      return () => this.#decreeSelections(list, (before) => before.filter((each) => each !== added));
    };
  }

  #decreeSelections(
    list: 'exclude' | 'include',
    change: (before: readonly Selection[]) => readonly Selection[],
  ) {
    const { name } = this.#cluster;
    this.#rulesStore.setPolicy(name, { ...this.#policy, [list]: change(this.#policy[list]) });
  }

  #seconds(): Policy['tolerationSecondsOverrides'] {
    return { [this.#random.pick(TAINT_KEYS)]: this.#random.pick(SECONDS) };
  }

  /** Adds a disruption budget that allows few evictions, or none. */
  #budget(): () => void {
    const cluster = this.#cluster;
    const random = this.#random;
    this.#orders += 1;
    const name = `b${this.#orders}`;
    cluster.setBudget(name, { app: random.pick(['web', 'batch']), allowed: random.between(0, 3) });
    return () => cluster.setBudget(name);
  }

  #releaseGuard(): void {
    this.#rulesStore.releaseGuard(this.#cluster.name);
    this.#scene.story.add('guard-released', { cluster: this.#cluster.name });
  }

  #knownRules() {
    const { orders, fleetStop } = this.#rulesStore.now(this.#cluster.name);
    const { mode, releaseRate, exclude, include, ...others } = this.#policy;
    const { guard, method, evictionRate } = others;
    const { stops, holds } = orders;
    return {
      mode,
      releaseRate,
      exclude,
      include,
      stops,
      fleetStop,
      holds,
      guard,
      method,
      evictionRate,
    };
  }

  #anyPod(): LivePod | undefined {
    const pods = [...this.#cluster.livePods.values()].filter(({ terminating }) => !terminating);
    return this.#random.pick(pods);
  }
}
