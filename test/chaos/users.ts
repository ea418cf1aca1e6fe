import { setTimeout as passes } from 'node:timers/promises';
import pMap from 'p-map';
import { ApiError } from '#shared/kubernetes/http/api-error.ts';
import type { TestCluster } from '#test/cluster/rig/test-cluster.ts';
import { until } from '#test/cluster/rig/until.ts';
import type { WatchedToleration } from '#test/cluster/rig/watched.ts';
import type { PodLife } from '#test/cluster/rig/witness.ts';
import type { SeededRandom } from '#test/simulation/seeded-random.ts';
import type { Deed, Plan, Tolerations } from './plan.ts';

/**
 * The label with the time in epoch ms at which an object's present state was first requested: the state cannot be
 * older.
 */
const REQUESTED_AT = 'taintward.dev/asked-at';
const PARALLEL = 32;
const SEEN_WITHIN_MS = 300_000;
const AGAIN_AFTER_MS = 300;
/** A suspended API server answers again within seconds, a busy machine's within minutes. */
const INSISTS_FOR_MS = 600_000;
const CHECKS_EVERY_MS = 250;
/** The delays of a controller and a scheduler. */
const REPLACED_AFTER_MS = [100, 3_000] as const;
/** A scheduler's view may lag behind. */
const ONTO_TAINTED = 0.1;
const UNDER_THE_SAME_NAME = 0.6;

/** Returns the time at which the state of an object was requested; `seenAt` where its labels do not contain it. */
export const requestedAt = (labels: Readonly<Record<string, string>>, seenAt: number): number =>
  Number(labels[REQUESTED_AT] ?? seenAt);

/** A taint that the harness has set on a node. */
interface WantedTaint {
  readonly key: string;
  readonly value: string;
  readonly timeAdded?: string;
}

/**
 * Simulates the users who taint, deploy, and delete, directly at the API server. Each deed is repeated until it
 * succeeds.
 */
export class Users {
  /** UIDs of the pods that they deleted. */
  readonly deleted = new Set<string>();
  readonly #cluster: TestCluster;
  readonly #random: SeededRandom;
  readonly #tolerations: Tolerations;
  readonly #nodes: string[] = [];
  readonly #taints = new Map<string, Map<string, WantedTaint>>();
  /** The last deed for each node and pod: deeds for one object run one after the other, in order. */
  readonly #lastOf = new Map<string, Promise<void>>();
  readonly #replaced = new Set<string>();
  #made = 0;

  constructor(cluster: TestCluster, random: SeededRandom, tolerations: Tolerations) {
    this.#cluster = cluster;
    this.#random = random;
    this.#tolerations = tolerations;
  }

  /** Creates the initial nodes and pods. */
  async settle({ pods }: Plan): Promise<void> {
    const indices = [...pods.keys()];
    const nodes = await pMap(indices, (index) => this.#cluster.addNode(`n${index}`), {
      concurrency: PARALLEL,
    });
    this.#nodes.push(...nodes);
    const made = pods.flatMap((lists, index) =>
      lists.map((tolerations) => ({ node: nodes[index] ?? '', tolerations })),
    );
    await pMap(made, ({ node, tolerations }) => this.#make(this.#newName(), node, tolerations), {
      concurrency: PARALLEL,
    });
    await until('all pods are seen', () => this.#living().length === made.length, SEEN_WITHIN_MS);
  }

  /** Executes a deed; resolves when it is done, or when its object does not exist. */
  do(deed: Deed): Promise<void> {
    switch (deed.kind) {
      case 'taint':
      case 'stamp':
      case 'untaint':
        return this.#changeTaints(deed);
      case 'tolerate':
        return this.#tolerate(deed);
      case 'delete': {
        const pod = this.#drawn(deed.draw);
        return pod ? this.#inTurn(pod.uid, () => this.#delete(pod)) : Promise.resolve();
      }
      default:
        return deed satisfies never;
    }
  }

  /** Creates a replacement for each deleted pod, until the signal. */
  async replace(signal: AbortSignal): Promise<void> {
    const comings: Promise<void>[] = [];
    while (!signal.aborted) {
      for (const pod of this.#cluster.witness.pods.values()) {
        if (pod.removedAt === undefined || this.#replaced.has(pod.uid)) continue;
        this.#replaced.add(pod.uid);
        comings.push(this.#replaceSoon(pod, signal));
      }
      await passes(CHECKS_EVERY_MS, undefined, { signal }).catch(() => undefined);
    }
    await Promise.all(comings);
  }

  async #replaceSoon({ name }: PodLife, signal: AbortSignal): Promise<void> {
    const random = this.#random;
    const next = random.chance(UNDER_THE_SAME_NAME) ? name : this.#newName();
    const tolerations = this.#tolerations.list();
    const anywhere = random.chance(ONTO_TAINTED);
    await passes(random.between(...REPLACED_AFTER_MS), undefined, { signal }).catch(() => undefined);
    if (signal.aborted) return;
    const free = this.#nodes.filter((node) => anywhere || (this.#taints.get(node)?.size ?? 0) === 0);
    await this.#make(next, random.pick(free) ?? random.pick(this.#nodes) ?? '', tolerations);
  }

  #newName(): string {
    this.#made += 1;
    return `p${this.#made}`;
  }

  async #make(name: string, node: string, tolerations: readonly WatchedToleration[]): Promise<void> {
    const labels = this.#stamped();
    try {
      await this.#insist(() => this.#cluster.createPod(name, { node, tolerations, labels }));
    } catch (error) {
      // An earlier attempt created it, or the previous pod of its name is still terminating.
      if (!(error instanceof ApiError && error.status === 409)) throw error;
    }
  }

  #changeTaints(deed: Extract<Deed, { readonly node: number }>): Promise<void> {
    const node = this.#nodes[deed.node];
    if (node === undefined) return Promise.resolve();
    const wanted = this.#taints.get(node) ?? new Map<string, WantedTaint>();
    this.#taints.set(node, wanted);
    return this.#inTurn(node, async () => {
      const { key } = deed;
      if (deed.kind === 'untaint') wanted.delete(key);
      // The time is in whole seconds, as the node controller writes it.
      else if (deed.kind === 'stamp') wanted.set(key, { key, value: deed.value, timeAdded: wholeSeconds() });
      else wanted.set(key, { key, value: deed.value });
      const taints = [...wanted.values()];
      const labels = this.#stamped();
      await this.#insist(() => this.#cluster.setTaints(node, taints, labels));
    });
  }

  #tolerate({ draw, key, seconds }: Extract<Deed, { kind: 'tolerate' }>): Promise<void> {
    const pod = this.#drawn(draw);
    if (!pod) return Promise.resolve();
    return this.#inTurn(pod.uid, async () => {
      // The API server permits only changes of the seconds, and additions.
      const index = pod.tolerations.findIndex(
        (each) => each.key === key && each.tolerationSeconds !== undefined,
      );
      const added = { key, operator: 'Exists', effect: 'NoExecute', tolerationSeconds: seconds };
      const tolerations =
        index < 0
          ? [...pod.tolerations, added]
          : pod.tolerations.with(index, { ...pod.tolerations[index], tolerationSeconds: seconds });
      const metadata = { uid: pod.uid, labels: this.#stamped() };
      const path = this.#cluster.podPath(pod.name);
      await this.#insist(() => this.#cluster.api.patch(path, { metadata, spec: { tolerations } })).catch(
        unlessRefused,
      );
    });
  }

  async #delete(pod: PodLife): Promise<void> {
    this.deleted.add(pod.uid);
    await this.#insist(() => this.#cluster.deletePod(pod));
  }

  #stamped(): Readonly<Record<string, string>> {
    return { [REQUESTED_AT]: String(Date.now()) };
  }

  #living(): readonly PodLife[] {
    return [...this.#cluster.witness.pods.values()].filter(({ evictedAt }) => evictedAt === undefined);
  }

  #drawn(draw: number): PodLife | undefined {
    const living = this.#living();
    return living[Math.floor(draw * living.length)];
  }

  #inTurn(what: string, work: () => Promise<void>): Promise<void> {
    const done = (this.#lastOf.get(what) ?? Promise.resolve()).then(work);
    this.#lastOf.set(what, done);
    return done;
  }

  /** Repeats a request until its response is neither a failure nor a timeout. */
  async #insist(attempt: () => Promise<unknown>): Promise<void> {
    const triedUntil = Date.now() + INSISTS_FOR_MS;
    while (true) {
      try {
        await attempt();
        return;
      } catch (error) {
        const isDefinite = error instanceof ApiError && [400, 404, 409, 422].includes(error.status);
        if (isDefinite || Date.now() > triedUntil) throw error;
        await passes(AGAIN_AFTER_MS);
      }
    }
  }
}

/** Ignores errors for a deleted pod, and for a change that was faster than the watch of the pod's tolerations. */
function unlessRefused(error: unknown): void {
  if (!(error instanceof ApiError && [404, 409, 422].includes(error.status))) throw error;
}

const wholeSeconds = (): string => `${new Date().toISOString().slice(0, 19)}Z`;
