import { Registry } from 'prom-client';
import { ClusterView, type Subject } from '#functions/watch-relay/cluster-view.ts';
import { Outbox } from '#functions/watch-relay/outbox.ts';
import { relayMetrics } from '#functions/watch-relay/relay-metrics.ts';
import { RESYNC_MS } from '#shared/eviction/facts.ts';
import type { EpochMs } from '#shared/eviction/identity.ts';
import type { QueueSender } from '#shared/queues/sender.ts';
import type { Rooms } from './house.ts';
import type { Heard, LiveCluster } from './live-cluster.ts';
import { queuePort } from './ports.ts';
import { Process } from './process.ts';
import type { Scene } from './scene.ts';

const RETRY_MS = 2_000;
/** How soon a relay finds out that a server is back. */
const LONGEST_BACKOFF_MS = 10_000;
const METRICS = relayMetrics(new Registry());

/** The relay's view and outbox over one simulated cluster, from its take-over of the lease to its death. */
export class SimulatedRelay {
  readonly process: Process;
  readonly #scene: Scene;
  readonly #cluster: LiveCluster;
  readonly #rooms: Rooms;
  readonly #heard = { nodes: 0, pods: 0 };
  readonly #synced: () => void;
  #wake: (() => void) | undefined;
  #resyncAt: EpochMs = 0;
  #gap = true;

  /** `synced`: called whenever it has told what it listed. */
  constructor(cluster: LiveCluster, scene: Scene, synced: () => void, process = new Process(scene)) {
    this.#scene = scene;
    this.#cluster = cluster;
    this.process = process;
    this.#rooms = scene.house.rooms(this.process);
    this.#synced = synced;
    void this.#speak();
  }

  async #speak(): Promise<void> {
    const { scene, process } = { scene: this.#scene, process: this.process };
    const { name } = this.#cluster;
    const lease = await this.#untilItWorks(async () => {
      const { leases } = this.#rooms;
      // The one before may not know of it yet; what it still says is told apart by its epoch.
      const now = scene.clock.now();
      const taken = await leases.take(name, await leases.look(name), `relay ${now}`, now);
      if (!taken) throw new Error('another relay was faster');
      return taken;
    });
    scene.story.tell('relay', { cluster: name, epoch: lease.epoch });
    scene.judge.leaseTaken(name, lease.epoch);
    const view = new ClusterView(name, lease.epoch);
    const outbox = new Outbox({
      nodeDeltas: this.#told(queuePort(process, scene.queues.nodeDeltas, scene)),
      podDeltas: this.#told(queuePort(process, scene.queues.podDeltas, scene)),
      clock: scene.clock,
      log: scene.log,
      metrics: METRICS,
    });
    // It does not know when it has lost its lease.
    outbox.open(name, view, () => true);
    void this.#follow('nodes', lease.epoch, view, outbox);
    void this.#follow('pods', lease.epoch, view, outbox);
    void this.#resync(view, outbox);
  }

  /** Keeps account of what is told. */
  #told(queue: QueueSender): QueueSender {
    const { fault, judge } = this.#scene;
    const planted = fault.relayQueue(queue, this.#cluster);
    return {
      send: (messages) => {
        for (const message of messages) {
          this.#cluster.truth.knowledge.sent(message);
          judge.told(message);
        }
        return planted.send(messages);
      },
    };
  }

  async #follow(kind: Heard['kind'], epoch: number, view: ClusterView, outbox: Outbox): Promise<void> {
    const { clock, random, weather } = this.#scene;
    const cluster = this.#cluster;
    const { knowledge } = cluster.truth;
    await this.#list(kind, epoch, view, outbox);
    while (!this.process.dead) {
      const change = await Promise.race([cluster.next(kind, this.#heard[kind]), this.#whenBack()]);
      if (change === undefined || weather.outageOf(cluster.name) || weather.gap()) {
        const over = this.#scene.disturbances.begin('relay', cluster.name, change?.at ?? clock.now());
        await clock.sleep(random.between(0, LONGEST_BACKOFF_MS));
        await this.#list(kind, epoch, view, outbox);
        over(clock.now());
        continue;
      }
      const lagMs = random.between(0, weather.climate.watchLagMs);
      if (change.at + lagMs > clock.now()) await clock.sleep(change.at + lagMs - clock.now());
      if (this.process.dead) return;
      this.#heard[kind] += 1;
      if (change.kind === 'nodes') knowledge.seen(epoch, change.node.name, change.state, clock.now());
      else knowledge.podSeen(change.pod.uid, clock.now());
      outbox.mark(cluster.name, subjectsOf(change, view, clock.now()));
    }
  }

  /** Resolves when an API server that is away answers again; for good when it is not away. */
  async #whenBack(): Promise<undefined> {
    const { clock, weather } = this.#scene;
    const next = weather.nextOutageOf(this.#cluster.name);
    if (!next) return new Promise<never>(() => undefined);
    await clock.sleep(next.to - clock.now());
    return undefined;
  }

  async #list(kind: Heard['kind'], epoch: number, view: ClusterView, outbox: Outbox): Promise<void> {
    const { clock, random, weather } = this.#scene;
    const cluster = this.#cluster;
    const outage = weather.outageOf(cluster.name);
    if (outage) await clock.sleep(outage.to - clock.now() + random.between(0, LONGEST_BACKOFF_MS));
    const listed = await this.#untilItWorks(() =>
      this.process.request(
        'api',
        () => ({
          heard: cluster.told[kind].length,
          nodes: [...cluster.liveNodes.values()],
          pods: [...cluster.livePods.values()],
          states: cluster.truth.states(),
        }),
        cluster.name,
      ),
    );
    this.#heard[kind] = listed.heard;
    if (kind === 'nodes') {
      for (const [node, state] of listed.states) {
        cluster.truth.knowledge.seen(epoch, node, state, clock.now());
      }
    } else {
      for (const { uid } of listed.pods) cluster.truth.knowledge.podSeen(uid, clock.now());
    }
    const now = clock.now();
    outbox.mark(
      cluster.name,
      kind === 'nodes' ? view.replaceNodes(listed.nodes, now) : view.replacePods(listed.pods, now),
    );
    this.#gap = true;
    this.#resyncAt = now;
    this.#wake?.();
  }

  async #resync(view: ClusterView, outbox: Outbox): Promise<void> {
    const { clock } = this.#scene;
    const { name } = this.#cluster;
    while (!this.process.dead) {
      if (clock.now() < this.#resyncAt || !view.synced) {
        await new Promise<void>((resolve) => {
          this.#wake = resolve;
          if (view.synced) clock.setAlarm(this.#resyncAt, resolve);
        });
        continue;
      }
      const wake = this.#gap;
      this.#gap = false;
      this.#resyncAt = clock.now() + RESYNC_MS;
      const stored = await this.#untilItWorks(() => Array.fromAsync(this.#rooms.store.taintedNodes(name)));
      outbox.mark(name, view.resync(stored, clock.now()), wake);
      if (wake) this.#synced();
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

function subjectsOf(change: Heard, view: ClusterView, now: EpochMs): readonly Subject[] {
  if (change.kind === 'nodes') {
    const { op, node } = change;
    return op === 'upsert' ? view.upsertNode(node, now) : view.deleteNode(node.name, now);
  }
  return change.op === 'upsert' ? view.upsertPod(change.pod, now) : view.deletePod(change.pod);
}
