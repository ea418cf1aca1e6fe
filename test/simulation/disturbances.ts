import { RESYNC_MS } from '#shared/eviction/facts.ts';
import type { ClusterName } from '#shared/eviction/identity.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';

const MINUTE_MS = 60_000;

/**
 * The kinds of disturbances, each with the time after its end by which the design completes all delayed work.
 * - `request`: the store, a queue or a timer fails or does not answer, or another process commits first. A message is returned
 *   to its queue. The last failure moves it to the dead-letter queue, and the next resync sends its content again.
 * - `death`: a process dies. Its messages become visible again, or are handled as above.
 * - `api`: an API server fails or does not answer, until the node's next try.
 * - `slow`: an API server answers slowly.
 * - `timer`: the message of a fired schedule is lost. Resyncs rearm timers that are overdue by more than a minute.
 * - `relay`: no relay sends or receives. The next one sends everything.
 * - `unregistered`: the cluster is not registered.
 */
const HEALING_MS = {
  request: RESYNC_MS,
  death: RESYNC_MS,
  api: 5 * MINUTE_MS,
  slow: 0,
  timer: RESYNC_MS + MINUTE_MS,
  relay: 0,
  unregistered: MINUTE_MS,
} as const;

export type DisturbanceKind = keyof typeof HEALING_MS;

interface Disturbance {
  readonly kind: DisturbanceKind;
  /** The disturbed cluster; `undefined`: all clusters. */
  readonly cluster: ClusterName | undefined;
  readonly from: EpochMs;
  /** The latest time at which the disturbance has an effect. */
  until: EpochMs;
}

/** The delay that still counts as on time: requests, polls, whole seconds of delays. */
const SLACK_MS = 6_000;

/** The actual disturbances of a history, by cluster and time. No other reason excuses a late eviction. */
export class Disturbances {
  readonly #all: Disturbance[] = [];

  /** Notes a disturbance from `from` to `to`; `healingMs`: the repair takes longer than usual. */
  note(
    kind: DisturbanceKind,
    cluster: ClusterName | undefined,
    from: EpochMs,
    to = from,
    healingMs = 0,
  ): void {
    this.#all.push({ kind, cluster, from, until: to + Math.max(HEALING_MS[kind], healingMs) });
  }

  /** Notes a disturbance as {@link note} does, which lasts until the first call of the returned function. */
  begin(kind: DisturbanceKind, cluster: ClusterName | undefined, from: EpochMs): (to: EpochMs) => void {
    const going: Disturbance = { kind, cluster, from, until: Infinity };
    this.#all.push(going);
    return (to) => {
      if (going.until === Infinity) going.until = to + HEALING_MS[kind];
    };
  }

  /** Returns the time by which work due at `at` is done if nothing fails. */
  inTime(at: EpochMs): EpochMs {
    return at + SLACK_MS;
  }

  /** Returns the time since which a cluster's API server has failed repeatedly; `at`: it has not. */
  troubledSince(cluster: ClusterName, at: EpochMs): EpochMs {
    let since = at;
    for (;;) {
      const before = this.#all.filter(
        (disturbance) =>
          disturbance.kind === 'api' &&
          (disturbance.cluster ?? cluster) === cluster &&
          disturbance.from < since &&
          disturbance.until >= since,
      );
      if (before.length === 0) return since;
      since = Math.min(...before.map(({ from }) => from));
    }
  }

  /** Reports whether a process died or a relay was replaced between these times. */
  wasReplaced(cluster: ClusterName, from: EpochMs, to: EpochMs): boolean {
    return this.#all.some(
      (disturbance) =>
        ['death', 'relay'].includes(disturbance.kind) &&
        (disturbance.cluster ?? cluster) === cluster &&
        from <= disturbance.from &&
        disturbance.from <= to,
    );
  }

  /** Reports whether no disturbance had an effect on a cluster between these times. */
  isQuiet(cluster: ClusterName, from: EpochMs, to: EpochMs): boolean {
    return this.#feltUntil(cluster, from, to) === undefined;
  }

  /** Returns the time by which a cluster had no effective disturbance for that duration, starting at `since`. */
  quietBy(cluster: ClusterName, since: EpochMs, ms: number): EpochMs {
    let from = since;
    for (;;) {
      const until = this.#feltUntil(cluster, from, from + ms);
      if (until === undefined) return from + ms + SLACK_MS;
      from = until;
    }
  }

  #feltUntil(cluster: ClusterName, from: EpochMs, to: EpochMs): EpochMs | undefined {
    const felt = this.#all.filter(
      (each) => (each.cluster ?? cluster) === cluster && each.from <= to && each.until + SLACK_MS > from,
    );
    return felt.length === 0 ? undefined : Math.max(...felt.map(({ until }) => until + SLACK_MS));
  }

  /** Returns the time by which a cluster's work due at `at` must be done, given the disturbances of these kinds. */
  excusedUntil(cluster: ClusterName, at: EpochMs, kinds?: readonly DisturbanceKind[]): EpochMs {
    let until = at + SLACK_MS;
    for (;;) {
      let longer = until;
      for (const disturbance of this.#all) {
        if (kinds && !kinds.includes(disturbance.kind)) continue;
        const felt =
          (disturbance.cluster ?? cluster) === cluster &&
          disturbance.from <= until &&
          disturbance.until + SLACK_MS > at;
        if (felt) longer = Math.max(longer, disturbance.until + SLACK_MS);
      }
      if (longer === until) return until;
      until = longer;
    }
  }
}
