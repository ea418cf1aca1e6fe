import { LOOK_MAX_AGE_MS } from '#functions/evict/pass.ts';
import type { EpochMs, PodUid } from '#shared/eviction/identity.ts';
import type { LivePod } from '#shared/kubernetes/api.ts';
import type { LogLine } from '#shared/telemetry/log-events.ts';
import { LATENCY_MS } from './process.ts';
import type { Scene } from './scene.ts';
import type { Truth } from './truth.ts';

/** From the look at a node until the deletion that follows from it: what a look may age, and four half requests. */
const NODE_LOOK_MS = LOOK_MAX_AGE_MS + 4 * LATENCY_MS;
/** Pods are looked at once in a pass. */
const POD_LOOK_MS = 5_000;
/** How late anything may be at the end, after an hour in which nothing went wrong. */
const CALM_LATENESS_MS = 30_000;

/** Holds the service against its promises (P1 to P6 of the design), by what really happened. */
export class Judge {
  readonly #scene: Scene;
  readonly #truth: Truth;
  readonly faults: string[] = [];
  readonly #evicted = new Set<PodUid>();
  readonly #cancelled = new Set<string>();

  constructor(scene: Scene, truth: Truth) {
    this.#scene = scene;
    this.#truth = truth;
  }

  get evicted(): number {
    return this.#evicted.size;
  }

  /** The service logs something; a cancellation is to be told in an Event, too. */
  hear({ event, fields }: LogLine): void {
    if (event === 'eviction.cancelled' && fields.announced) this.#cancelled.add(fields.uid);
  }

  judgeDeletion(pod: LivePod, meant: PodUid): void {
    const { clock, weather } = this.#scene;
    const now = clock.now();
    if (pod.uid !== meant) this.#fault(`P1: ${meant} was meant and ${pod.uid} deleted`);
    if (pod.terminating) return;
    this.#evicted.add(pod.uid);
    const earliest = this.#truth.mayGo(pod.uid, now, NODE_LOOK_MS, POD_LOOK_MS);
    if (earliest === undefined) this.#fault(`P1: ${pod.uid} was deleted without a reason`);
    else if (earliest > now) this.#fault(`P1: ${pod.uid} was deleted ${earliest - now} ms early`);
    const latest = this.#truth.mustGo(pod.uid, now);
    if (latest !== undefined && now - latest > (weather.climate.latenessMs ?? Infinity)) {
      this.#fault(`P2: ${pod.uid} was deleted ${now - latest} ms late`);
    }
  }

  async judgeEnd(): Promise<void> {
    const { cluster, clock, queues, weather } = this.#scene;
    const late = clock.now() - CALM_LATENESS_MS;
    for (const { uid, terminating } of cluster.livePods.values()) {
      const latest = this.#truth.mustGo(uid, clock.now());
      if (!terminating && latest !== undefined && latest < late) {
        this.#fault(`P2: ${uid} should have gone ${clock.now() - latest} ms ago`);
      }
    }
    await this.#judgeStore(late);
    for (const [name, queue] of Object.entries(queues)) {
      if (queue.size > 0) this.#fault(`P6: ${name} still holds ${queue.size} messages`);
    }
    const { evictionsDue, nodeDeltas, podDeltas } = queues;
    if (evictionsDue.deadLetters.length > 0) this.#fault('P6: a due message was dead-lettered');
    if (weather.climate.trouble === 0) {
      if (nodeDeltas.deadLetters.length + podDeltas.deadLetters.length > 0) {
        this.#fault('P6: a delta was dead-lettered although nothing went wrong');
      }
      this.#judgeEvents();
    }
  }

  async #judgeStore(late: EpochMs): Promise<void> {
    const { clock, cluster, name, store } = this.#scene;
    const stored = (await Array.fromAsync(store.taintedNodes(name))).map(({ node }) => node);
    const tainted = [...cluster.liveNodes.values()].filter(({ taints }) => taints.length > 0);
    const deserted = (node: string) => ![...cluster.livePods.values()].some((pod) => pod.node === node);
    for (const node of tainted.filter((each) => !stored.includes(each.name))) {
      this.#fault(`P5: the store does not know that ${node.name} is tainted`);
    }
    for (const node of stored) {
      const gone =
        cluster.liveNodes.get(node)?.taints.length === 0 || (!cluster.liveNodes.has(node) && deserted(node));
      if (gone) this.#fault(`P5: the store still holds ${node} as tainted`);
      const { scheduled } = await store.load({ cluster: name, node }, clock.now());
      for (const { uid, fireAt } of scheduled.values())
        if (fireAt <= late) this.#fault(`P2: ${uid} is still scheduled although it is overdue`);
    }
  }

  #judgeEvents(): void {
    const keys = this.#scene.cluster.events.map(({ key }) => key);
    for (const uid of this.#evicted) {
      if (!keys.includes(`${uid}/marking`)) this.#fault(`the deletion of ${uid} was not told`);
    }
    for (const uid of this.#cancelled) {
      const told = keys.some((key) => key.startsWith(`${uid}/cancelling/`));
      if (!told) this.#fault(`P3: the cancellation of ${uid} was not told`);
    }
  }

  #fault(what: string): void {
    this.faults.push(what);
  }
}
