import type { Change, LivePod } from '#shared/kubernetes/api.ts';
import type { PassingPods } from './pod-room.ts';
import { isNewer } from './resource-version.ts';

/** So many events wait for a list at most; beyond, another list is cheaper. */
const MAX_BUFFERED = 10_000;

/**
 * One node's pods, from lists and from events that come in no common order. From before a list is asked the events are
 * kept; its answer, of some version, replaces everything known; and then only events newer than that count, those kept
 * and those to come. So neither a pod that went before an older list answered comes back, nor is one lost.
 */
export class PodMerge {
  readonly #passing: PassingPods;
  /** Of the list that counts. */
  #version: string | undefined;
  #kept: Change<LivePod>[] | undefined;
  #keptBytes = 0;
  #asked = 0;

  constructor(passing: PassingPods) {
    this.#passing = passing;
  }

  /** Whether a list has answered. */
  get listed(): boolean {
    return this.#version !== undefined;
  }

  /** A list is about to be asked for. An answer to an earlier one no longer counts. */
  ask(): number {
    this.#asked += 1;
    this.drop();
    this.#kept = [];
    return this.#asked;
  }

  /**
   * The pods that there are, by the answer to the list `asked` and what was heard since. `undefined`: it does not count,
   * because another one was asked for, or more was heard than is kept.
   */
  answer(asked: number, pods: readonly LivePod[], version: string): readonly LivePod[] | undefined {
    if (asked !== this.#asked || !this.#kept) return undefined;
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

  /** A list got no answer. */
  giveUp(asked: number): void {
    if (asked === this.#asked) this.drop();
  }

  /** What is kept for a list on its way is forgotten: its answer does not count. */
  drop(): void {
    this.#kept = undefined;
    this.#passing.give(this.#keptBytes);
    this.#keptBytes = 0;
  }

  /** Whether a change counts now; when a list is on its way, it may count again after that. */
  hear(change: Change<LivePod>): boolean {
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
