import { isDeepStrictEqual } from 'node:util';
import type { AdminApi } from './admin-api.ts';
import { type Change, listen } from './listen.ts';
import {
  type WatchedCondition,
  WatchedEvent,
  WatchedNode,
  WatchedPod,
  type WatchedTaint,
  type WatchedToleration,
} from './watched.ts';

/** One pod (one UID) as the witness saw it. Times are the arrivals of watch events, in epoch ms of this process. */
export interface PodLife {
  readonly uid: string;
  readonly name: string;
  /** The empty string until the pod is bound. */
  readonly node: string;
  readonly seenAt: number;
  readonly generation: number | undefined;
  readonly tolerations: readonly WatchedToleration[];
  /** The pod's tolerations over time, oldest first. */
  readonly moments: readonly PodMoment[];
  readonly runningAt?: number;
  /** The `DisruptionTarget` condition, and whether it was seen before the pod's deletion. */
  readonly disruption?: WatchedCondition & { readonly beforeDeletion: boolean };
  /** The time at which a `deletionTimestamp` was seen, or the pod's end without one. */
  readonly evictedAt?: number;
  /** The second of its clock in which the API server received the delete. */
  readonly deletedIn?: number;
  readonly gracePeriodSeconds?: number;
  readonly removedAt?: number;
}

/** A pod's labels and tolerations from a time on. */
export interface PodMoment {
  readonly at: number;
  readonly labels: Readonly<Record<string, string>>;
  readonly tolerations: readonly WatchedToleration[];
}

/** A node's labels and NoExecute taints from a time on. */
export interface NodeMoment {
  readonly at: number;
  readonly labels: Readonly<Record<string, string>>;
  readonly taints: readonly WatchedTaint[];
  readonly deleted: boolean;
}

/** An Event, and when it was seen. */
export interface SeenEvent extends WatchedEvent {
  readonly at: number;
}

type Mutable<T> = { -readonly [K in keyof T]: T[K] };

/** Records the suite's nodes, pods, and Events as a watcher of the API server sees them. */
export class Witness {
  readonly pods = new Map<string, PodLife>();
  readonly nodes = new Map<string, NodeMoment[]>();
  readonly #events: SeenEvent[] = [];
  #failure: Error | undefined;
  /** Events can be lost independently: their watch cannot always be resumed after minutes without changes. */
  #eventsFailure: Error | undefined;

  /** Starts to watch; `onPod` also receives every pod change. Resolves when no change can be missed. */
  async start(
    api: AdminApi,
    scope: { readonly namespace: string; readonly nodeSelector: string },
    onPod: (change: Change, pod: WatchedPod) => void,
    signal: AbortSignal,
  ): Promise<void> {
    const failed = (error: Error) => {
      this.#failure = error;
    };
    const inNamespace = (resource: string) => `/api/v1/namespaces/${scope.namespace}/${resource}`;
    await Promise.all([
      listen(api, {
        path: '/api/v1/nodes',
        query: { labelSelector: scope.nodeSelector },
        signal,
        failed,
        receive: (change, json) => this.#seeNode(change, WatchedNode.parse(json)),
      }),
      listen(api, {
        path: inNamespace('pods'),
        query: {},
        signal,
        failed,
        receive: (change, json) => {
          const pod = WatchedPod.parse(json);
          this.#seePod(change, pod);
          onPod(change, pod);
        },
      }),
      listen(api, {
        path: inNamespace('events'),
        query: {},
        signal,
        failed: (error) => {
          this.#eventsFailure = error;
        },
        receive: (change, json) => {
          if (change !== 'DELETED') this.#events.push({ ...WatchedEvent.parse(json), at: Date.now() });
        },
      }),
    ]);
  }

  /** Throws when the watch of nodes or pods is lost: missing changes then prove nothing. */
  check(): void {
    if (this.#failure) throw this.#failure;
  }

  #checkEvents(): void {
    this.check();
    if (this.#eventsFailure) throw this.#eventsFailure;
  }

  /** Returns all pods that had a name, oldest first. */
  podsNamed(name: string): readonly PodLife[] {
    this.check();
    return [...this.pods.values()].filter((pod) => pod.name === name);
  }

  /** Returns the Events of evictions, for one pod or for all, in the order seen. */
  taintManagerEvents(podName?: string): readonly SeenEvent[] {
    this.#checkEvents();
    return this.#events.filter(
      ({ reason, involvedObject }) =>
        reason === 'TaintManagerEviction' && (podName === undefined || involvedObject['name'] === podName),
    );
  }

  /** Returns the distinct reasons of the Events about a pod, in the order first seen. */
  reasonsOf(podName: string): readonly string[] {
    this.#checkEvents();
    const about = this.#events.filter(({ involvedObject }) => involvedObject['name'] === podName);
    return [...new Set(about.map(({ reason }) => reason))];
  }

  #seeNode(change: Change, { metadata, spec }: WatchedNode): void {
    const taints = spec.taints.filter(({ effect }) => effect === 'NoExecute');
    const moments = this.nodes.get(metadata.name) ?? [];
    moments.push({
      at: Date.now(),
      labels: metadata.labels,
      taints,
      deleted: change === 'DELETED',
    });
    this.nodes.set(metadata.name, moments);
  }

  #seePod(change: Change, { metadata, spec, status }: WatchedPod): void {
    const at = Date.now();
    const { uid, name } = metadata;
    const life: Mutable<PodLife> = this.pods.get(uid) ?? {
      uid,
      name,
      node: spec.nodeName,
      seenAt: at,
      generation: metadata.generation,
      tolerations: spec.tolerations,
      moments: [],
    };
    this.pods.set(uid, life);
    if (life.node === '') life.node = spec.nodeName;
    life.tolerations = spec.tolerations;
    if (!isDeepStrictEqual(life.moments.at(-1)?.tolerations, spec.tolerations)) {
      const moment = { at, labels: metadata.labels, tolerations: spec.tolerations };
      life.moments = [...life.moments, moment];
    }
    if (metadata.deletionTimestamp === undefined) life.generation = metadata.generation;
    if (status.phase === 'Running') life.runningAt ??= at;
    const disruption = status.conditions.find(({ type }) => type === 'DisruptionTarget');
    if (disruption) {
      life.disruption ??= { ...disruption, beforeDeletion: metadata.deletionTimestamp === undefined };
    }
    if (metadata.deletionGracePeriodSeconds !== undefined) {
      life.gracePeriodSeconds ??= metadata.deletionGracePeriodSeconds;
    }
    if (metadata.deletionTimestamp !== undefined) {
      const graceSeconds = metadata.deletionGracePeriodSeconds ?? 0;
      life.deletedIn ??= Date.parse(metadata.deletionTimestamp) / 1_000 - graceSeconds;
    }
    if (metadata.deletionTimestamp !== undefined || change === 'DELETED') life.evictedAt ??= at;
    if (change === 'DELETED') life.removedAt ??= at;
  }
}
