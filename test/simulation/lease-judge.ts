import type { LivePod } from '#shared/kubernetes/api.ts';
import { NODE_UNREACHABLE } from '#shared/taints/taint.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';
import type { Accuse, Bench } from './judge.ts';
import type { LiveCluster } from './live-cluster.ts';
import type { NodeObservation } from './simulated-api.ts';
import type { Freedom } from './truth.ts';

/** The maximum age of a pass's Lease data when a delete is sent. */
const READ_AGE_MS = 20_000;
/** The time within which a pod is checked again after its node's Lease has expired. */
const CHECKED_AGAIN_MS = 10_000;

/** P9, by the Leases of nodes that a stale control plane calls unreachable. */
export class LeaseJudge {
  readonly #bench: Bench;
  readonly #accuse: Accuse;

  constructor(bench: Bench, accuse: Accuse) {
    this.#bench = bench;
    this.#accuse = accuse;
  }

  /** `looks`: the observations that the decision may be based on. */
  deletion(
    { leases, truth }: LiveCluster,
    pod: LivePod,
    sentAt: EpochMs,
    reads: readonly NodeObservation[],
  ): void {
    if (!leases || pod.node === undefined || reads.length === 0) return;
    const isByUnreachable = reads.every(({ node, state, begunAt }) => {
      if (state === undefined || !truth.readingOf(node, state).there) return false;
      const due = truth
        .keysBy(node, state, begunAt)
        .filter((key) => (truth.mayGo(pod.uid, state, begunAt, key) ?? Infinity) <= sentAt);
      return due.length > 0 && due.every((key) => key === NODE_UNREACHABLE);
    });
    if (!isByUnreachable) return;
    this.#bench.tried('P9');
    if (leases.isFreshThroughout(pod.node, sentAt - READ_AGE_MS, sentAt))
      this.#accuse(`P9: ${pod.uid} was deleted although its node is alive`);
  }

  /**
   * Returns a function that gives the time by which a pod must be released: by the policy (`freed`), and after its node's Lease
   * expires.
   */
  freedom({ leases }: LiveCluster, { node }: LivePod, freed: Freedom): Freedom {
    if (!leases || node === undefined) return freed;
    return (key, dueAt, changedAt) => {
      const byPolicy = freed(key, dueAt, changedAt);
      if (key !== NODE_UNREACHABLE) return byPolicy;
      return Math.max(byPolicy ?? dueAt, leases.expiresAt(node) + CHECKED_AGAIN_MS);
    };
  }
}
