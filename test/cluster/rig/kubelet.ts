import { setTimeout as delay } from 'node:timers/promises';
import { ApiError } from '#shared/kubernetes/http/api-error.ts';
import { type Backoff, backoffMs } from '#shared/time/backoff.ts';
import type { AdminApi } from './admin-api.ts';
import type { Change } from './listen.ts';
import type { WatchedPod } from './watched.ts';

/** Pods with this label are re-created as soon as they are deleted: same name, same node, another UID. */
export const COMES_BACK = { 'taintward.dev/comes-back': 'true' } as const;

/**
 * The interval of node status updates, like a kubelet's `nodeStatusUpdateFrequency`: well within the 40 s after which a
 * node counts as not ready.
 */
const HEARTBEAT_MS = 10_000;
/** The suite does not fail because an API server was stopped for seconds. */
const MAY_FAIL_FOR_MS = 60_000;
/**
 * A kubelet retries indefinitely. The backoff keeps thousands of pods from adding load to a server that is already
 * overloaded.
 */
const RETRY: Backoff = { firstMs: 200, longestMs: 2_000 };

/**
 * Stands in for the kubelets of the suite's nodes, which exist in the API server only. Pods run as soon as they are
 * bound and end as soon as they are deleted, and nodes stay ready. It also re-creates pods as a StatefulSet does.
 */
export class Kubelet {
  readonly #api: AdminApi;
  readonly #namespace: string;
  readonly #ready = new Set<string>();
  readonly #started = new Set<string>();
  readonly #ended = new Set<string>();
  readonly #heartbeat: NodeJS.Timeout;
  /** Nodes whose last heartbeat is still being sent. */
  readonly #signing = new Set<string>();
  /** The work that has failed for longer than {@link MAY_FAIL_FOR_MS}, with its last error. */
  readonly #failing = new Map<() => Promise<unknown>, Error>();
  #stopped = false;

  constructor(api: AdminApi, namespace: string) {
    this.#api = api;
    this.#namespace = namespace;
    this.#heartbeat = setInterval(() => {
      for (const node of this.#ready) void this.#giveSign(node);
    }, HEARTBEAT_MS);
  }

  addNode(node: string): void {
    this.#ready.add(node);
  }

  removeNode(node: string): void {
    this.#ready.delete(node);
  }

  /** Reports the node as not ready, and sends no heartbeats after that. */
  async failNode(node: string): Promise<void> {
    this.#ready.delete(node);
    await this.#report(node, 'False');
  }

  receive(change: Change, pod: WatchedPod): void {
    const { uid, labels, deletionTimestamp } = pod.metadata;
    if (this.#stopped || pod.spec.nodeName === '') return;
    if (change === 'DELETED') {
      const comesBack = Object.keys(COMES_BACK).every((label) => label in labels);
      if (comesBack) this.#do(() => this.#recreate(pod));
    } else if (deletionTimestamp !== undefined) {
      if (this.#once(this.#ended, uid)) this.#do(() => this.#end(pod));
    } else if (pod.status.phase === 'Pending' && this.#once(this.#started, uid)) {
      this.#do(() => this.#run(pod));
    }
  }

  /** Throws while a pod cannot be served: the suite itself then causes the results it sees. */
  check(): void {
    const [failure] = this.#failing.values();
    if (failure) throw failure;
  }

  stop(): void {
    this.#stopped = true;
    clearInterval(this.#heartbeat);
  }

  #run(pod: WatchedPod): Promise<unknown> {
    const at = pod.metadata.creationTimestamp;
    const conditions = ['PodScheduled', 'Initialized', 'ContainersReady', 'Ready'].map((type) => ({
      type,
      status: 'True',
      lastTransitionTime: at,
    }));
    return this.#api.patchStatus(this.#path(pod), { phase: 'Running', startTime: at, conditions });
  }

  #end(pod: WatchedPod): Promise<void> {
    const preconditions = { uid: pod.metadata.uid };
    return this.#api.remove(this.#path(pod), { gracePeriodSeconds: 0, preconditions });
  }

  #recreate({ metadata: { name, labels }, spec }: WatchedPod): Promise<unknown> {
    const metadata = { name, labels };
    return this.#api.create(this.#path(), { apiVersion: 'v1', kind: 'Pod', metadata, spec });
  }

  #report(node: string, status: 'True' | 'False'): Promise<unknown> {
    const lastHeartbeatTime = new Date().toISOString();
    const condition = { type: 'Ready', status, reason: 'Suite', lastHeartbeatTime };
    return this.#api.patchStatus(`/api/v1/nodes/${node}`, { conditions: [condition] });
  }

  #path(pod?: WatchedPod): string {
    const pods = `/api/v1/namespaces/${this.#namespace}/pods`;
    return pod ? `${pods}/${pod.metadata.name}` : pods;
  }

  #once(done: Set<string>, uid: string): boolean {
    if (done.has(uid)) return false;
    done.add(uid);
    return true;
  }

  async #giveSign(node: string): Promise<void> {
    if (this.#signing.has(node)) return;
    this.#signing.add(node);
    await this.#untilDone(() => this.#report(node, 'True'));
    this.#signing.delete(node);
  }

  #do(work: () => Promise<unknown>): void {
    void this.#untilDone(work);
  }

  async #untilDone(work: () => Promise<unknown>): Promise<void> {
    const begunAt = Date.now();
    for (let failures = 1; ; failures++) {
      try {
        await work();
        break;
      } catch (error) {
        if (this.#stopped) return;
        // The object does not exist any more, or exists already: another request was faster.
        if (error instanceof ApiError && [404, 409].includes(error.status)) break;
        if (Date.now() - begunAt >= MAY_FAIL_FOR_MS) this.#failing.set(work, error as Error);
        await delay(backoffMs(failures, RETRY));
      }
    }
    this.#failing.delete(work);
  }
}
