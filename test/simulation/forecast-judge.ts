import type { ClusterName, NodeName, PodUid } from '#shared/eviction/identity.ts';
import type { Forecast, forecastPod } from '#shared/explain/forecast.ts';
import type { LivePod } from '#shared/kubernetes/api.ts';
import { rulesOf } from '#shared/state/rules-store.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import { enforcing } from '#test/world/enforced-rules.ts';
import type { LiveCluster } from './live-cluster.ts';
import { MATCHING, type Scene } from './scene.ts';
import { SeededRandom } from './seeded-random.ts';

export type ForecastPod = typeof forecastPod;

/** A forecast for a pod, and the revision of the rules and budgets it was based on. */
interface MadeForecast {
  readonly pod: LivePod;
  readonly forecast: Forecast;
  readonly madeAt: EpochMs;
  readonly revision: string;
}

/** The seed of the judge's own random numbers: everything else happens as without it. */
const SEED = 20_260;
/** The longest time between forecasts, and the pods of each cluster in each round. */
const MAX_PAUSE_MS = 30_000;
const PODS = 4;
/** The time after the last change by which all evictions have happened. */
const BUSY_MS = 60 * 60_000;
/** The time after which relays notice a release, and send it a second time to functions that were just holding the pod. */
const RELEASE_MS = 9_000;

/**
 * Asks repeatedly for forecasts of pods, once the service has received all changes. Notes events that differ from the forecast
 * although nothing changed.
 */
export class ForecastJudge {
  readonly faults: string[] = [];
  /** The number of correct forecasts, by outcome. */
  readonly correct: Record<string, number> = {};
  readonly #scene: Scene;
  readonly #forecastPod: ForecastPod;
  readonly #random: SeededRandom;
  readonly #forecasts = new Map<PodUid, MadeForecast[]>();
  /** The time of the last change of each node and each pod. */
  readonly #changedAt = new Map<string, EpochMs>();

  constructor(scene: Scene, forecastPod: ForecastPod) {
    this.#scene = scene;
    this.#forecastPod = forecastPod;
    this.#random = new SeededRandom(SEED);
    this.#pause();
  }

  #pause(): void {
    const { clock } = this.#scene;
    clock.setAlarm(clock.now() + this.#random.between(1_000, MAX_PAUSE_MS), () => {
      for (const cluster of this.#scene.clusters) {
        this.#judgeLate(cluster);
        if (this.#scene.weather.busyWithin(BUSY_MS)) void this.#forecast(cluster);
      }
      this.#pause();
    });
  }

  nodeChanged(cluster: ClusterName, node: NodeName): void {
    this.#changedAt.set(`${cluster} ${node}`, this.#scene.clock.now());
    for (const [uid, [first]] of this.#forecasts) {
      if (first?.pod.node === node && this.#clusterOf(uid) === cluster) this.#forecasts.delete(uid);
    }
  }

  podChanged(uid: PodUid): void {
    this.#changedAt.set(uid, this.#scene.clock.now());
    this.#forecasts.delete(uid);
  }

  /** Compares a deletion by the service with the forecasts. */
  deletion(cluster: ClusterName, uid: PodUid, sentAt: EpochMs): void {
    for (const { forecast, madeAt } of this.#valid(cluster, uid)) {
      // The deletion was under way at the time of the forecast.
      if (madeAt >= sentAt) continue;
      if (forecast.kind === 'evict' && sentAt >= soonest(forecast)) this.#count(forecast);
      else this.#accuse(uid, madeAt, forecast, `it went at ${sentAt}`);
    }
    this.#forecasts.delete(uid);
  }

  /** Judges the end of the history, after a long calm time. */
  judgeEnd(): void {
    for (const cluster of this.#scene.clusters) this.#judgeLate(cluster);
  }

  async #forecast(cluster: LiveCluster): Promise<void> {
    const { clock, rulesStore, storage } = this.#scene;
    const now = clock.now();
    const pods = [...cluster.livePods.values()].filter(
      (pod) =>
        !pod.terminating &&
        pod.node !== undefined &&
        (cluster.truth.taintsOf(pod.node)?.length ?? 0) > 0 &&
        this.#isSettled(cluster, pod, now) &&
        !cluster.truth.isLost(pod.uid),
    );
    const revision = this.#revisionOf(cluster);
    const budgets = Array.from(cluster.budgets, ([name, { app, allowed }]) => ({
      name,
      selector: { matchLabels: { app } },
      allowed,
    }));
    const rules = rulesStore
      ? rulesOf(rulesStore.now(cluster.name), MATCHING)
      : await enforcing(MATCHING)(cluster.name);
    for (let made = 0; made < PODS; made++) {
      const pod = this.#random.pick(pods);
      if (!pod || pod.node === undefined) continue;
      const partition = await storage.open.store.load({ cluster: cluster.name, node: pod.node }, now);
      const node = cluster.liveNodes.get(pod.node);
      const live = { taints: node?.taints, taintsStamp: node?.taintsStamp, zone: node?.zone };
      const forecast = this.#forecastPod({ now, partition, rules, live, budgets }).forecastOf(pod);
      const forecasts = this.#forecasts.get(pod.uid) ?? [];
      forecasts.push({ pod, forecast, madeAt: now, revision });
      if (forecast.kind !== 'evict') this.#count(forecast);
      this.#forecasts.set(pod.uid, forecasts);
    }
  }

  /** Reports whether all information about a pod has reached the service. */
  #isSettled({ name }: LiveCluster, { uid, node }: LivePod, now: EpochMs): boolean {
    const { disturbances, rulesStore } = this.#scene;
    const changedAt = Math.max(
      this.#changedAt.get(uid) ?? 0,
      this.#changedAt.get(`${name} ${node}`) ?? 0,
      rulesStore?.history(name).at(-1)?.at ?? 0,
    );
    return disturbances.excusedUntil(name, changedAt) < now;
  }

  /** Returns the forecasts for a pod under the current rules and budgets. */
  #valid(name: ClusterName, uid: PodUid): readonly MadeForecast[] {
    const cluster = this.#scene.clusters.find((each) => each.name === name);
    const revision = cluster && this.#revisionOf(cluster);
    return (this.#forecasts.get(uid) ?? []).filter((each) => each.revision === revision);
  }

  /** A budget changes, too, once it allows no further eviction. */
  #revisionOf({ name, budgets, budgetChanges }: LiveCluster): string {
    const spent = [...budgets.values()].filter(({ allowed }) => allowed === 0).length;
    return [this.#scene.rulesStore?.history(name).length, budgetChanges, spent].join();
  }

  #judgeLate(cluster: LiveCluster): void {
    const { clock, disturbances, rulesStore } = this.#scene;
    const releaseRate = rulesStore?.now(cluster.name).orders.policy?.read.releaseRate ?? 50;
    const turnMs = RELEASE_MS + (cluster.mostPods / releaseRate) * 1000;
    for (const uid of this.#forecasts.keys()) {
      if (this.#clusterOf(uid) !== cluster.name) continue;
      for (const { forecast, madeAt } of this.#valid(cluster.name, uid)) {
        if (forecast.kind !== 'evict') continue;
        const waits = forecast.heldBy.length > 0 || forecast.pacedBy !== undefined ? turnMs : 0;
        const latest = disturbances.excusedUntil(cluster.name, Math.max(forecast.at, madeAt) + waits);
        if (clock.now() <= latest) continue;
        this.#accuse(uid, madeAt, forecast, `it is still there at ${clock.now()}`);
        this.#forecasts.delete(uid);
        break;
      }
    }
  }

  #clusterOf(uid: PodUid): ClusterName | undefined {
    return this.#scene.clusters.find(({ name }) => uid.startsWith(`${name}.`))?.name;
  }

  #count(forecast: Forecast): void {
    const what =
      forecast.kind === 'evict' && forecast.heldBy.length > 0 ? 'goes, held before' : forecast.kind;
    this.correct[what] = (this.correct[what] ?? 0) + 1;
  }

  #accuse(uid: PodUid, madeAt: EpochMs, forecast: Forecast, what: string): void {
    this.faults.push(`${uid}: ${what}, although ${JSON.stringify(forecast)} was forecast at ${madeAt}`);
  }
}

/**
 * Returns the earliest time of a forecast eviction. A failed eviction may happen before its retry, if its cluster answers
 * earlier.
 */
const soonest = ({ at, dueAt, retrying }: Extract<Forecast, { kind: 'evict' }>): EpochMs =>
  retrying ? dueAt : at;
