import { Registry } from 'prom-client';
import { DeltaSender } from '#shared/aws/relay/delta-sender.ts';
import { ClusterFaults } from '#shared/engine/watch/cluster-faults.ts';
import type { ClusterView } from '#shared/engine/watch/cluster-view.ts';
import { ClusterWatch } from '#shared/engine/watch/cluster-watch.ts';
import { PodFollowLimits } from '#shared/engine/watch/follow-pods.ts';
import { GuardController, type GuardControllerDeps } from '#shared/engine/watch/guard-controller.ts';
import type { Outbox } from '#shared/engine/watch/ports.ts';
import { relayMetrics } from '#shared/engine/watch/relay-metrics.ts';
import type { RulesListener } from '#shared/engine/watch/rules-watch.ts';
import type { Rules } from '#shared/eviction/policy.ts';
import type { QueueSender } from '#shared/state/sender.ts';
import { enforced } from '#test/world/enforced-rules.ts';
import type { Guard } from './fault.ts';
import type { LiveCluster } from './live-cluster.ts';
import { guardPort, queuePort, rulesWatch } from './ports.ts';
import { Process } from './process.ts';
import { RecordingView } from './recording-view.ts';
import { MATCHING, type Scene } from './scene.ts';
import { SimulatedApi } from './simulated-api.ts';

const RETRY_MS = 2_000;
/** The interval at which a relay checks whether the guard releases pods because of elapsed time. */
const REVIEW_MS = 10_000;
const METRICS = relayMetrics(new Registry());

/** The relay's watch, view, guard and outbox over one simulated cluster, from acquiring the lease to its death. */
export class SimulatedRelay {
  readonly process: Process;
  readonly #scene: Scene;
  readonly #cluster: LiveCluster;
  readonly #synced: () => void;
  readonly #outbox: Outbox;
  #hasLease = false;

  /** `synced`: called as soon as the relay has all the data to report the whole cluster. `outbox`: absent = to the queues. */
  constructor(
    cluster: LiveCluster,
    scene: Scene,
    synced: () => void,
    process = new Process(scene),
    outbox?: Outbox,
  ) {
    this.#scene = scene;
    this.#cluster = cluster;
    this.process = process;
    this.#outbox = outbox ?? this.#toQueues();
    this.#synced = synced;
    void this.#lead();
  }

  /** True if the relay acquired the lease; it may have lost the lease since. */
  get hasLease(): boolean {
    return this.#hasLease;
  }

  async #lead(): Promise<void> {
    const { scene, process } = { scene: this.#scene, process: this.process };
    const { clock, fault, log, weather } = scene;
    const { name } = this.#cluster;
    const { leases, store } = scene.storage.ports(process);
    const lease = await this.#untilItWorks(async () => {
      // The previous relay may not have noticed the loss of its lease yet. The epoch identifies its later messages.
      const now = clock.now();
      const taken = await leases.take(name, await leases.read(name), `relay ${now}`, now);
      if (!taken) throw new Error('another relay was faster');
      return taken;
    });
    this.#hasLease = true;
    scene.story.add('relay', { cluster: name, epoch: lease.epoch });
    scene.judge.leaseTaken(name, lease.epoch);
    const knowing = new RecordingView(name, lease.epoch, this.#cluster.truth, clock);
    const view = fault.relayView(knowing);
    const outbox = this.#outbox;
    const api = fault.relayApi(new SimulatedApi(this.#cluster, process, scene, knowing), scene);
    let recalled = false;
    const ended = new AbortController();
    const { signal } = ended;
    let seeing: { readonly watch: ClusterWatch; readonly guard: Guard | undefined } | undefined;
    const see = (rules: Rules) => {
      // The relay does not notice when it has lost its lease.
      const knows = () => view.listed && watch.connectionState.kind !== 'disconnected';
      const retell = (wake: boolean) =>
        outbox.mark(
          name,
          view.followed().map((node) => ({ node })),
          wake,
        );
      const guard = this.#guard(view, rules, { knows, freed: () => outbox.send(), retell, signal });
      const watch = new ClusterWatch(name, api, view, {
        store,
        limits: new FewWatches(weather.climate.ownWatches),
        clock,
        log,
        metrics: METRICS,
        faults: new ClusterFaults(clock),
        rules,
        claim: async () => undefined,
        counted: () => guard?.counted(),
        deleted: () => undefined,
        gone: () => undefined,
        mark: (subjects, wake) => {
          outbox.mark(name, subjects, wake);
          // `wake` is true only for nodes that the watch has recalled from the store.
          recalled ||= wake;
          if (recalled && !view.awaitsPods) this.#synced();
        },
      });
      outbox.open(name, view, () => guard?.maySend ?? true);
      watch.start();
      return { watch, guard };
    };
    const ruled = fault.relayRuled((rules) => seeing?.watch.ruled(rules));
    this.#followRules(signal, (rules) => {
      seeing?.guard?.ruled(rules);
      if (seeing) ruled(rules);
      else seeing = see(rules);
    });
    void process.death.then(() => {
      ended.abort();
      outbox.stop();
      void seeing?.watch.stop();
    });
  }

  #toQueues(): DeltaSender {
    const { queues, clock, log } = this.#scene;
    return new DeltaSender({
      nodeDeltas: this.#recorded(queuePort(this.process, queues.nodeDeltas, this.#scene)),
      podDeltas: this.#recorded(queuePort(this.process, queues.podDeltas, this.#scene)),
      clock,
      log,
      metrics: METRICS,
    });
  }

  /** Returns the cluster's guard; a cluster without an owner has none. */
  #guard(
    view: ClusterView,
    rules: Rules,
    deps: Pick<GuardControllerDeps, 'knows' | 'freed' | 'retell' | 'signal'>,
  ): Guard | undefined {
    const { clock, fault, log, rulesStore } = this.#scene;
    if (!rulesStore) return undefined;
    const written = fault.guardBook(guardPort(this.process, rulesStore), this.#scene);
    const keeper = new GuardController(this.#cluster.name, view, rules, {
      ...deps,
      rulesStore: written,
      saved: () => undefined,
      clock,
      log,
    });
    const guard = fault.relayGuard(keeper);
    const reviews = clock.setInterval(REVIEW_MS, () => guard.review());
    deps.signal.addEventListener('abort', () => {
      reviews.off = true;
    });
    return guard;
  }

  /** Calls the listener with the cluster's rules, first with the current ones and then after each change. */
  #followRules(signal: AbortSignal, listener: RulesListener): void {
    const { rulesStore } = this.#scene;
    if (!rulesStore) {
      listener(enforced(MATCHING));
      return;
    }
    const rules = rulesWatch(this.process, rulesStore, this.#scene);
    rules.follow(this.#cluster.name, listener, signal);
    signal.addEventListener('abort', () => void rules.stop());
  }

  /** Returns a queue that records the messages sent. */
  #recorded(queue: QueueSender): QueueSender {
    const { fault, judge } = this.#scene;
    const planted = fault.relayQueue(queue, this.#cluster);
    return {
      send: (messages) => {
        for (const message of messages) {
          this.#cluster.truth.knowledge.sent(message);
          judge.sent(message);
        }
        return planted.send(messages);
      },
    };
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

/** Limits the available watches as if other clusters used most of them. */
class FewWatches extends PodFollowLimits {
  #left: number;

  constructor(watches: number) {
    super();
    this.#left = watches;
  }

  override takeWatch(): boolean {
    if (this.#left === 0) return false;
    this.#left -= 1;
    return true;
  }

  override giveWatch(): void {
    this.#left += 1;
  }
}
