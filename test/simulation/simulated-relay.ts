import { Registry } from 'prom-client';
import { ClusterView, type Subject } from '#functions/watch-relay/cluster-view.ts';
import { Outbox } from '#functions/watch-relay/outbox.ts';
import { relayMetrics } from '#functions/watch-relay/relay-metrics.ts';
import { RESYNC_MS } from '#shared/eviction/facts.ts';
import type { EpochMs } from '#shared/eviction/identity.ts';
import type { Store } from '#shared/store/store.ts';
import type { Heard } from './live-cluster.ts';
import { queuePort, storePort } from './ports.ts';
import { Process } from './process.ts';
import type { Scene } from './scene.ts';

/** The longest that a watch takes to tell what happened. */
export const WATCH_LAG_MS = 1_500;
const RETRY_MS = 2_000;
const METRICS = relayMetrics(new Registry());

/** Told when what happened meanwhile may have gone unseen. */
type OnBlind = (from: EpochMs, to: EpochMs) => void;

/** The relay's view and outbox over the simulated cluster, from its take-over of the lease to its death. */
export class SimulatedRelay {
  readonly process: Process;
  readonly #scene: Scene;
  readonly #onBlind: OnBlind;
  readonly #store: Store;
  readonly #view: ClusterView;
  readonly #outbox: Outbox;
  readonly #heard = { nodes: 0, pods: 0 };
  #wake: (() => void) | undefined;
  #resyncAt: EpochMs = 0;
  #gap = true;

  constructor(epoch: number, scene: Scene, onBlind: OnBlind) {
    this.#scene = scene;
    this.#onBlind = onBlind;
    this.process = new Process(scene);
    this.#store = storePort(this.process, scene.store, scene);
    this.#view = new ClusterView(scene.name, epoch);
    this.#outbox = new Outbox({
      nodeDeltas: queuePort(this.process, scene.queues.nodeDeltas, scene),
      podDeltas: queuePort(this.process, scene.queues.podDeltas, scene),
      clock: scene.clock,
      log: scene.log,
      metrics: METRICS,
    });
    // It does not know when it has lost its lease.
    this.#outbox.open(scene.name, this.#view, () => true);
    void this.#follow('nodes');
    void this.#follow('pods');
    void this.#resync();
  }

  async #follow(kind: Heard['kind']): Promise<void> {
    const { clock, cluster, random, weather } = this.#scene;
    await this.#list(kind);
    while (!this.process.dead) {
      const change = await cluster.next(kind, this.#heard[kind]);
      if (weather.gap()) {
        const since = clock.now() - WATCH_LAG_MS;
        await clock.sleep(random.between(0, 10_000));
        await this.#list(kind);
        this.#onBlind(since, clock.now());
        continue;
      }
      await clock.sleep(random.between(0, WATCH_LAG_MS / 10));
      if (this.process.dead) return;
      this.#heard[kind] += 1;
      this.#outbox.mark(this.#scene.name, this.#subjectsOf(change));
    }
  }

  async #list(kind: Heard['kind']): Promise<void> {
    const { clock, cluster } = this.#scene;
    const listed = await this.#untilItWorks(() =>
      this.process.request('api', async () => ({
        heard: cluster.told[kind].length,
        nodes: [...cluster.liveNodes.values()],
        pods: [...cluster.livePods.values()],
      })),
    );
    this.#heard[kind] = listed.heard;
    const now = clock.now();
    this.#outbox.mark(
      this.#scene.name,
      kind === 'nodes'
        ? this.#view.replaceNodes(listed.nodes, now)
        : this.#view.replacePods(listed.pods, now),
    );
    this.#gap = true;
    this.#resyncAt = now;
    this.#wake?.();
  }

  #subjectsOf(change: Heard): readonly Subject[] {
    const now = this.#scene.clock.now();
    if (change.kind === 'nodes') {
      const { op, node } = change;
      return op === 'upsert' ? this.#view.upsertNode(node, now) : this.#view.deleteNode(node.name, now);
    }
    return change.op === 'upsert' ? this.#view.upsertPod(change.pod, now) : this.#view.deletePod(change.pod);
  }

  async #resync(): Promise<void> {
    const { clock, name } = this.#scene;
    while (!this.process.dead) {
      if (clock.now() < this.#resyncAt || !this.#view.synced) {
        await new Promise<void>((resolve) => {
          this.#wake = resolve;
          if (this.#view.synced) clock.setAlarm(this.#resyncAt, resolve);
        });
        continue;
      }
      const wake = this.#gap;
      this.#gap = false;
      this.#resyncAt = clock.now() + RESYNC_MS;
      const stored = await this.#untilItWorks(() => Array.fromAsync(this.#store.taintedNodes(name)));
      this.#outbox.mark(name, this.#view.resync(stored, clock.now()), wake);
    }
  }

  async #untilItWorks<Result>(work: () => Promise<Result>): Promise<Result> {
    for (;;) {
      try {
        return await work();
      } catch {
        await this.#scene.clock.sleep(RETRY_MS);
      }
    }
  }
}
