import type { ClusterName } from '#shared/eviction/identity.ts';
import type { BuiltIn } from '#shared/explain/built-in.ts';
import type { Fleet } from '#shared/operations/fleet/fleet.ts';
import { builtInOf } from '#shared/operations/look/built-in.ts';
import { errorMessage } from '#shared/text/error-message.ts';
import { Age } from '#shared/time/age.ts';
import type { Clock } from '#shared/time/clock.ts';

/** The read covers the whole control plane, which rarely changes. */
const ASK_AGAIN_MS = 5 * 60_000;

const NO_ANSWER_YET: BuiltIn = { state: 'unknown', evidence: 'its cluster has not answered yet' };

interface KnownBuiltIn {
  readonly age: Age;
  readonly builtIn: BuiltIn;
}

export interface BuiltInWatchDeps {
  readonly fleet: Pick<Fleet, 'cluster'>;
  readonly clock: Clock;
  /** Absent: the evidence is read from the cluster's objects. */
  readonly ask?: typeof builtInOf;
}

/** Reads in the background, so callers never wait. */
export class BuiltInWatch {
  readonly #deps: BuiltInWatchDeps;
  readonly #known = new Map<ClusterName, KnownBuiltIn>();
  readonly #asking = new Map<ClusterName, Promise<void>>();

  constructor(deps: BuiltInWatchDeps) {
    this.#deps = deps;
  }

  of(cluster: ClusterName): BuiltIn {
    const known = this.#known.get(cluster);
    const isOld = !known || known.age.atMostMs >= ASK_AGAIN_MS;
    if (isOld && !this.#asking.has(cluster)) {
      const asking = this.#ask(cluster).finally(() => this.#asking.delete(cluster));
      this.#asking.set(cluster, asking);
    }
    return known?.builtIn ?? NO_ANSWER_YET;
  }

  async #ask(cluster: ClusterName): Promise<void> {
    const { fleet, clock, ask = builtInOf } = this.#deps;
    const age = new Age(clock);
    let builtIn: BuiltIn;
    try {
      const live = await fleet.cluster(cluster);
      try {
        builtIn = await ask(live.objects);
      } finally {
        live.close();
      }
    } catch (error) {
      builtIn = { state: 'unknown', evidence: errorMessage(error) };
    }
    this.#known.set(cluster, { age, builtIn });
  }
}
