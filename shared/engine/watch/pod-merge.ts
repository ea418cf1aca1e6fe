import type { Change, LivePod } from '#shared/kubernetes/api.ts';
import { isNewer } from './list-pages.ts';
import type { PassingPods } from './memory-limits.ts';

/** Maximum events that wait for a list; beyond that, another list is cheaper. */
const MAX_BUFFERED = 10_000;

/**
 * One node's pods, merged from lists and from events in no common order. Events are kept from before a list is
 * requested. Its answer replaces everything known, and only newer events count: a pod removed before an older list
 * answered doesn't reappear, and no pod is lost.
 */
export class PodMerge {
  readonly #passing: PassingPods;
  /** Version of the list that counts. */
  #version: string | undefined;
  #kept: Change<LivePod>[] | undefined;
  #keptBytes = 0;
  #lists = 0;

  constructor(passing: PassingPods) {
    this.#passing = passing;
  }

  get listed(): boolean {
    return this.#version !== undefined;
  }

  /** Starts to keep events for a list that is about to be requested. An answer to an earlier list no longer counts. */
  ask(): number {
    this.#lists += 1;
    this.drop();
    this.#kept = [];
    return this.#lists;
  }

  /** Returns the existing pods; `undefined`: another list was requested, or more events arrived than are kept. */
  answer(list: number, pods: readonly LivePod[], version: string): readonly LivePod[] | undefined {
    if (list !== this.#lists || !this.#kept) return undefined;
    const known = new Map(pods.map((pod) => [pod.uid, pod]));
    for (const { kind, object } of this.#kept) {
      if (!isNewer(object.resourceVersion, version)) continue;
      if (kind === 'upsert') known.set(object.uid, object);
      else known.delete(object.uid);
    }
    this.#version = version;
    this.drop();
    return [...known.values()];
  }

  giveUp(list: number): void {
    if (list === this.#lists) this.drop();
  }

  /** Drops the events that are kept for a list in progress: its answer doesn't count. */
  drop(): void {
    this.#kept = undefined;
    this.#passing.give(this.#keptBytes);
    this.#keptBytes = 0;
  }

  /** Reports whether a change counts now. While a list is in progress, the change may count again afterwards. */
  receive(change: Change<LivePod>): boolean {
    if (this.#kept) this.#keep(this.#kept, change);
    return this.#version !== undefined && isNewer(change.object.resourceVersion, this.#version);
  }

  #keep(kept: Change<LivePod>[], change: Change<LivePod>): void {
    const bytes = kept.length < MAX_BUFFERED ? this.#passing.take(change.object) : undefined;
    if (bytes === undefined) {
      this.drop();
      return;
    }
    kept.push(change);
    this.#keptBytes += bytes;
  }
}
