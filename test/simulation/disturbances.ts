import { RESYNC_MS } from '#shared/eviction/facts.ts';
import type { ClusterName } from '#shared/eviction/identity.ts';
import type { EpochMs } from '#shared/time/epoch-ms.ts';

const MINUTE_MS = 60_000;

/**
 * What may go wrong, and how long after it is over the design has everything done that it held up.
 * - `request`: the store, a queue or a timer refuses or does not answer, or somebody commits first. A message is given
 *   back to its queue; the last time to the dead-letter queue, and the next resync tells anew.
 * - `death`: of a process; what it had in hand comes back when its queue shows it again, or as above.
 * - `api`: an API server refuses or does not answer: the node's next try.
 * - `slow`: an API server takes its time.
 * - `timer`: a schedule fires and nobody hears: resyncs rearm what is overdue by more than a minute.
 * - `relay`: no relay tells, or hears; the one that comes tells everything.
 * - `unregistered`: nobody manages the cluster.
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
  /** Whom it disturbs; `undefined`: all. */
  readonly cluster: ClusterName | undefined;
  readonly from: EpochMs;
  /** Until when it is felt at the latest. */
  until: EpochMs;
}

/** What is done this late was done in time: requests, polls, whole seconds of delays. */
const SLACK_MS = 6_000;

/** What really went wrong in a history, for whom and when: nothing else excuses that the service is late. */
export class Disturbances {
  readonly #all: Disturbance[] = [];

  /** Something went wrong from `from` to `to`; `healingMs`: what heals it takes longer than usual. */
  note(
    kind: DisturbanceKind,
    cluster: ClusterName | undefined,
    from: EpochMs,
    to = from,
    healingMs = 0,
  ): void {
    this.#all.push({ kind, cluster, from, until: to + Math.max(HEALING_MS[kind], healingMs) });
  }

  /** As {@link note}, for what goes on until what it returns is called, the first time. */
  begin(kind: DisturbanceKind, cluster: ClusterName | undefined, from: EpochMs): (to: EpochMs) => void {
    const going: Disturbance = { kind, cluster, from, until: Infinity };
    this.#all.push(going);
    return (to) => {
      if (going.until === Infinity) going.until = to + HEALING_MS[kind];
    };
  }

  /** What was to be done at `at` is done by then where nothing goes wrong. */
  inTime(at: EpochMs): EpochMs {
    return at + SLACK_MS;
  }

  /** Since when a cluster's API server has failed, again and again; `at`: it has not. */
  troubledSince(cluster: ClusterName, at: EpochMs): EpochMs {
    let since = at;
    for (;;) {
      const before = this.#all.filter(
        (each) =>
          each.kind === 'api' &&
          (each.cluster ?? cluster) === cluster &&
          each.from < since &&
          each.until >= since,
      );
      if (before.length === 0) return since;
      since = Math.min(...before.map(({ from }) => from));
    }
  }

  /** Whether a process died or a relay took over between these two. */
  wasReplaced(cluster: ClusterName, from: EpochMs, to: EpochMs): boolean {
    return this.#all.some(
      (each) =>
        ['death', 'relay'].includes(each.kind) &&
        (each.cluster ?? cluster) === cluster &&
        from <= each.from &&
        each.from <= to,
    );
  }

  /** Whether nothing that went wrong was felt in a cluster between these two. */
  isQuiet(cluster: ClusterName, from: EpochMs, to: EpochMs): boolean {
    return this.#feltUntil(cluster, from, to) === undefined;
  }

  /** When nothing that went wrong was felt for so long in a cluster, since then. */
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

  /** By when a cluster's work that was to be done at `at` must be done, given what went wrong, of these kinds. */
  excusedUntil(cluster: ClusterName, at: EpochMs, kinds?: readonly DisturbanceKind[]): EpochMs {
    let until = at + SLACK_MS;
    for (;;) {
      let longer = until;
      for (const each of this.#all) {
        if (kinds && !kinds.includes(each.kind)) continue;
        const felt =
          (each.cluster ?? cluster) === cluster && each.from <= until && each.until + SLACK_MS > at;
        if (felt) longer = Math.max(longer, each.until + SLACK_MS);
      }
      if (longer === until) return until;
      until = longer;
    }
  }
}
