import {
  type Evict,
  type EvictionDecision,
  evaluate,
  type NodeObservation,
} from '#shared/eviction/evaluate.ts';
import { asksLease, clusterGate, isObserved } from '#shared/eviction/gate.ts';
import type { PodUid } from '#shared/eviction/identity.ts';
import { type NodeLife, nodeLife } from '#shared/eviction/node-life.ts';
import type { Rules } from '#shared/eviction/policy.ts';
import type { EvictionRecord, NodeState, Partition } from '#shared/eviction/records.ts';
import type { LivePod } from '#shared/kubernetes/api.ts';
import { ApiError } from '#shared/kubernetes/http/api-error.ts';
import { NODE_UNREACHABLE } from '#shared/taints/taint.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import type { PassScope } from './ports.ts';

/** Maximum age of a node's Lease: kubelets renew theirs as often, and most passes end sooner. */
export const LEASE_MAX_AGE_MS = 10_000;
/** A younger look serves the next delete, too: half of what a delete allows, as the delete waits for its turn. */
export const YOUNG_MS = 125;

/** A node as one look found it, and the rules by which it decides pods. */
export interface NodeView {
  readonly observation: NodeObservation;
  readonly stored: NodeState | undefined;
  /** When the server's answer arrived. The stored state may have taken longer. */
  readonly answeredAt: EpochMs;
  readonly rules: Rules;
  readonly verdict: ReturnType<typeof evaluate>;
}

/** The first look of a pass: its node, and those due pods that exist. */
export interface FirstView {
  readonly view: NodeView;
  readonly pods: ReadonlyMap<PodUid, LivePod>;
}

/** Looks at the node of one pass, as often as the pass needs. */
export class NodeReader {
  readonly #scope: PassScope;
  readonly #terminatingNamespaces = new Set<string>();
  #newest: NodeView | undefined;
  #reading: Promise<NodeView> | undefined;
  #lease: { readonly requestedAt: EpochMs; readonly life: Promise<NodeLife> } | undefined;

  constructor(scope: PassScope) {
    this.#scope = scope;
  }

  /** Reads the node, its Lease if that may decide, and the due pods. */
  async first(due: readonly EvictionRecord[]): Promise<FirstView> {
    const { api, partition, loadedAt } = this.#scope;
    // A server that counts as unreachable gets a single request: a second one would be rejected, and fail the pass.
    const isInReach = !api.breakerOpen;
    const reading = this.#readNow(partition, isInReach ? this.#foreseenLife(due) : undefined);
    if (!isInReach) await reading;
    const [view, found] = await Promise.all([reading, api.podsOnNode(partition.ref.node, due)]);
    // The stored state is older than the answer.
    this.#newest = { ...view, answeredAt: Math.min(view.answeredAt, loadedAt) };
    const pods = new Map(found.map((pod) => [pod.uid, pod]));
    if (!due.some((record) => isUnread(view.verdict(record, pods.get(record.uid))))) return { view, pods };
    const life = await this.#life().catch(() => undefined);
    return { view: life ? withLife(view, life) : view, pods };
  }

  /** Resolves with a look that is younger, by the current rules; 0: with one that begins no earlier than now. */
  async recent(youngerThanMs: number): Promise<NodeView> {
    if (youngerThanMs === 0) await this.#reading?.catch(() => undefined);
    const known = this.#newest;
    if (known && this.#scope.clock.now() - known.answeredAt < youngerThanMs)
      return byRules(known, await this.rules(known.stored));
    this.#reading ??= this.#readNow().finally(() => {
      this.#reading = undefined;
    });
    return this.#reading;
  }

  /** Resolves with the current rules, at least as new as a view's stored state requires. */
  rules(stored?: NodeState): Promise<Rules> {
    return this.#scope.rules(this.#scope.partition.ref.cluster, stored?.guardRevision);
  }

  /** Decides a pod by a view. Reads the Lease first if it may keep the pod. */
  async decide(view: NodeView, record: EvictionRecord, pod: LivePod | undefined): Promise<EvictionDecision> {
    const verdict = view.verdict(record, pod);
    if (!isUnread(verdict)) return verdict;
    const later = withLife(view, await this.#life()).verdict(record, pod);
    return isUnread(later) ? { kind: 'behind' } : later;
  }

  /** Later looks know that a namespace is being deleted. */
  sawTerminating(namespace: string): void {
    this.#terminatingNamespaces.add(namespace);
  }

  /**
   * Reads the stored state again, unless `loaded` just now: a delta may have reported since that a taint was set again,
   * or that a deleted node had no taints anymore.
   */
  async #readNow(loaded?: Partition, foreseen?: Promise<NodeLife | undefined>): Promise<NodeView> {
    const { store, clock, api, partition } = this.#scope;
    const { ref } = partition;
    const at = clock.now();
    const answering = api.getNode(ref.node).then((live) => ({ live, answeredAt: clock.now() }));
    const loading = loaded ?? store.load(ref, at, []);
    const asking = foreseen ?? (this.#lease && this.#life().catch(() => undefined));
    const [{ live, answeredAt }, { node: stored }, life] = await Promise.all([answering, loading, asking]);
    const { taints, taintsStamp, zone } = live ?? {};
    const { skews } = api;
    const terminatingNamespaces = this.#terminatingNamespaces;
    const observation = { node: ref.node, at, taints, taintsStamp, zone, life, skews, terminatingNamespaces };
    // Read the rules last: a server may take longer than rules stay valid.
    const rules = await this.rules(stored);
    this.#newest = judged({ observation, stored, answeredAt, rules });
    return this.#newest;
  }

  /**
   * Reads the Lease along with the node if a pod is due because the node is unreachable. An error recurs for its user.
   */
  async #foreseenLife(due: readonly EvictionRecord[]): Promise<NodeLife | undefined> {
    const causes = due.flatMap((record) => record.causes);
    if (!causes.some(({ taint }) => taint.key === NODE_UNREACHABLE)) return undefined;
    try {
      const rules = await this.rules();
      const decides = asksLease(rules) && (isObserved(rules) || !clusterGate(rules, this.#scope.clock.now()));
      return decides ? await this.#life() : undefined;
    } catch {
      return undefined;
    }
  }

  /** Reads the Lease once, and again in a pass that takes long. Rejects with `ApiError`. */
  #life(): Promise<NodeLife> {
    const { clock, api, partition } = this.#scope;
    const requestedAt = clock.now();
    if (this.#lease && requestedAt - this.#lease.requestedAt <= LEASE_MAX_AGE_MS) return this.#lease.life;
    const life = api.getNodeLease(partition.ref.node).then(
      (lease) => nodeLife(lease, clock.now()),
      (error: unknown): NodeLife => {
        // Without the permission, pods are evicted as if policy didn't ask for the Lease.
        if (error instanceof ApiError && error.status === 403) return { kind: 'lapsed', because: 'hidden' };
        throw error;
      },
    );
    this.#lease = { requestedAt, life };
    return life;
  }
}

/** Returns a decided eviction, also one that only observe mode prevents. */
export const evictionOf = (verdict: EvictionDecision): Evict | undefined =>
  verdict.kind === 'evict' ? verdict : verdict.kind === 'hold' ? verdict.would : undefined;

const isUnread = (verdict: EvictionDecision): boolean => evictionOf(verdict)?.lease === 'unread';

const judged = (view: Omit<NodeView, 'verdict'>): NodeView => ({
  ...view,
  verdict: evaluate(view.stored, view.observation, view.rules),
});

/** Returns a view by other rules: the same object if they are the same. */
export const byRules = (view: NodeView, rules: Rules): NodeView =>
  rules === view.rules ? view : judged({ ...view, rules });

const withLife = (view: NodeView, life: NodeLife): NodeView =>
  judged({ ...view, observation: { ...view.observation, life } });
