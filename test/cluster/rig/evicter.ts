import { type ApplyDeltaDeps, applyDelta } from '#functions/deltas/apply-delta.ts';
import { type EvictDeps, evictNode } from '#functions/evict/evict-node.ts';
import { EmbeddedRateLimiter } from '#functions/local/embedded-rate-limiter.ts';
import { SqliteStore } from '#functions/local/sqlite-store.ts';
import { clusterName, type NodeRef, nodeName } from '#shared/eviction/identity.ts';
import type { Rules } from '#shared/eviction/policy.ts';
import { RestApi } from '#shared/kubernetes/rest-api.ts';
import { systemClock } from '#shared/time/clock.ts';
import { recordingLog } from '#test/contracts/recording-log.ts';
import { loadContexts } from '#test/world/load-contexts.ts';
import { CONTEXT } from './stage.ts';

const CLUSTER = clusterName(CONTEXT);

/** What decides and evicts, on a real cluster, by rules that the test gives; the test tells it of tainted nodes. */
export class Evicter {
  readonly log = recordingLog();
  rules: Rules;
  readonly #api: RestApi;
  readonly #store = new SqliteStore({ path: ':memory:' });
  readonly #rates = new EmbeddedRateLimiter();
  readonly #timers = new Set<NodeJS.Timeout>();
  #sequence = 0;

  /** `kubeconfig`: of an account on the cluster. */
  constructor(kubeconfig: string, rules: Rules) {
    this.rules = rules;
    const [context] = loadContexts({ kubeconfig, contexts: [CONTEXT] });
    if (!context) throw new Error(`${kubeconfig} has no context ${CONTEXT}.`);
    this.#api = new RestApi(context.connection);
  }

  /** Tells of all pods of a node that is tainted since now. */
  async tell(node: string, ...keys: readonly string[]): Promise<void> {
    const ref = { cluster: CLUSTER, node: nodeName(node) };
    const { taintsStamp } = (await this.#api.getNode(ref.node)) ?? {};
    const { items } = await this.#api.pods.list({ onNode: ref.node, signal: new AbortController().signal });
    const now = Date.now();
    await applyDelta(
      {
        kind: 'node',
        ref,
        version: { epoch: 1, sequence: ++this.#sequence },
        observedAt: now,
        taints: keys.map((key) => ({ key, effect: 'NoExecute', known: 'appeared', seenAt: now })),
        ...(taintsStamp === undefined ? {} : { taintsStamp }),
        pods: items,
        wake: false,
      },
      this.#deps(),
    );
  }

  /** The record of a pod, while it is scheduled. */
  async record(node: string, uid: string) {
    const { scheduled } = await this.#store.load({ cluster: CLUSTER, node: nodeName(node) }, Date.now());
    return [...scheduled.values()].find((record) => record.uid === uid);
  }

  close(): void {
    for (const timer of this.#timers) clearTimeout(timer);
    this.#timers.clear();
    this.#api.close();
  }

  #lookAt(moment: number, ref: NodeRef): void {
    const timer = setTimeout(
      async () => {
        this.#timers.delete(timer);
        // A timer of the process may ring a moment early.
        if (Date.now() < moment) return this.#lookAt(moment, ref);
        const again = await evictNode(ref, this.#deps());
        if (again) this.#lookAt(Date.now() + again.againInSeconds * 1000, ref);
      },
      Math.max(0, moment - Date.now()),
    );
    this.#timers.add(timer);
  }

  #deps(): ApplyDeltaDeps & EvictDeps {
    return {
      store: this.#store,
      clock: systemClock,
      log: this.log,
      rules: async () => this.rules,
      leaseEpoch: async () => 1,
      clusters: { api: async () => this.#api },
      dueQueue: { send: async () => [] },
      deadLetters: { send: async () => [] },
      timers: {
        arm: async (ref, moments) => {
          for (const moment of moments) this.#lookAt(moment, ref);
        },
      },
      rates: this.#rates,
      metrics: {
        podDeleted: () => undefined,
        requestRefused: () => undefined,
        retried: () => undefined,
        gaveUp: () => undefined,
        clockSkewed: () => undefined,
        rivalSeen: () => undefined,
      },
    };
  }
}
